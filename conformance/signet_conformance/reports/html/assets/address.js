/* Where the reader is: a trace, a session or an exchange of it, a member. It stands in the address of the page behind
   the #, so that it can be sent to a colleague, and the browser's Back leads to where one was before. */

let shown = { number: -1, data: null, group: null, row: null };

function addressOf(place) {
  const parts = Object.entries(place).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return "#" + parts.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
}

function readAddress() {
  const place = {};
  for (const part of location.hash.slice(1).split("&")) {
    const [name, value] = part.split("=");
    try {
      if (value !== undefined) place[name] = decodeURIComponent(value);
    } catch { /* an address that was cut in the middle of a letter */ }
  }
  return place;
}

/* The address of a session of a trace ("*" for all exchanges, "-" for those of none), or of an exchange in it. */
function placeOf(data, group, row, at) {
  const session = group && group !== data.groups[0] ? (group.keyed ? `key ${group.name}` : "-") : null;
  return { trace: data.name, session, exchange: row ? row[SEQ] : null, at: at || null };
}

function go(place, focus = true) {
  const address = addressOf(place);
  if (address !== location.hash) {
    try {
      history.pushState(null, "", address);
    } catch { /* a page in a frame of somebody's may have no address of its own */ }
  }
  show(place, focus);
}

function traceNumber(name) {
  const button = [...document.querySelectorAll("button[data-trace]")].find((it) => it.dataset.name === name);
  return button ? Number(button.dataset.trace) : -1;
}

/* Draws what is not drawn yet; returns whether the page holds the place. */
function show(place, focus) {
  const number = place.trace === undefined ? -1 : traceNumber(place.trace);
  if (number < 0) return place.trace === undefined || missing(`There is no trace ${place.trace} in this page.`);
  if (number !== shown.number) drawTrace(number);
  const data = shown.data;
  const row = place.exchange ? data.rows.find((it) => String(it[SEQ]) === String(place.exchange)) : null;
  const group = groupAt(data, place.session, row);
  if (group !== shown.group) drawSession(data, group);
  if (place.exchange && !row) return missing(`The trace ${data.file} has no exchange #${place.exchange} in this page.`);
  if (row) drawExchange(data, group, row, place.at || "", focus);
  else if (focus) document.querySelector(place.session ? "#session-view h3" : "#session-list h3").focus();
  return true;
}

function groupAt(data, session, row) {
  const wanted = session === undefined || session === null ? null
    : data.groups.find((it) => (session === "-" ? !it.keyed && it !== data.groups[0] : it.keyed && session === `key ${it.name}`));
  if (wanted && (!row || wanted.rows.includes(row))) return wanted;
  if (shown.group && shown.data === data && row && shown.group.rows.includes(row)) return shown.group;
  return row && data.groups[0].rows.length > EXCHANGES_AT_ONCE ? data.groups.find((it) => it.keyed && it.rows.includes(row)) || data.groups[0]
    : row ? data.groups[0] : firstGroup(data);
}

function missing(text) {
  const told = make("p", { role: "status", tabindex: "-1" }, text);
  document.getElementById("exchange-view").replaceChildren(told);
  told.focus();
  return false;
}

window.addEventListener("hashchange", () => show(readAddress(), true));
