/* The traces of a run, the sessions of a trace, the exchanges of a session: each drawn when it is asked for. */

const SEQ = 0, BEGAN = 1, TOOK = 2, METHOD = 3, PATH = 4, OPERATION = 5, KEY = 6, AGENT = 7, STATUS = 8, ERROR = 9, FAULT = 10;
const WORST = ["ERROR", "FAIL", "WARN"];
const SESSIONS_AT_ONCE = 100, EXCHANGES_AT_ONCE = 200;

function readTrace(number) {
  const data = JSON.parse(document.getElementById(`trace-${number}`).textContent);
  data.text = (index) => (index < 0 ? null : data.strings[index]);
  data.findings = (row) => data.found[row[SEQ]] || [];
  return data;
}

function worstOf(findings) {
  return WORST.find((verdict) => findings.some((finding) => finding[0] === verdict)) || null;
}

/* All exchanges first, then those of each session in the order in which they began, then those of none. */
function groupsOf(data) {
  const groups = new Map();
  for (const row of data.rows) {
    if (!groups.has(row[KEY])) groups.set(row[KEY], []);
    groups.get(row[KEY]).push(row);
  }
  const none = groups.get(-1);
  groups.delete(-1);
  const found = [...groups].map(([key, rows]) => ({ name: data.text(key), keyed: true, rows }));
  if (none) found.push({ name: "without a session", keyed: false, rows: none });
  found.unshift({ name: "all exchanges", keyed: false, rows: data.rows });
  for (const group of found) {
    group.agents = [...new Set(group.rows.map((row) => data.text(row[AGENT])).filter((agent) => agent !== null))];
    group.findings = group.rows.flatMap(data.findings);
    group.search = [group.name, ...group.agents].join(" ").toLowerCase();
  }
  return found;
}

function tally(findings) {
  return WORST.map((verdict) => [verdict, findings.filter((finding) => finding[0] === verdict).length])
    .filter(([, count]) => count).flatMap(([verdict, count]) => [" ", verdictTag(verdict), ` ${count}`]);
}

function plural(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/* Entries as a list that grows by a page at a time; after "Show more" the first new entry has the focus. */
function growingList(label, entries, perPage, entryOf, more) {
  const list = make("ol", { class: "entries", "aria-label": label });
  const holder = make("div", {}, list);
  let shown = 0;
  const button = make("button", { type: "button", onclick: () => {
    const first = shown;
    grow();
    list.children[first].querySelector("button").focus();
  } });
  const grow = () => {
    const next = entries.slice(shown, shown + perPage);
    next.forEach((entry) => list.append(make("li", {}, entryOf(entry))));
    shown += next.length;
    button.textContent = `Show ${Math.min(perPage, entries.length - shown)} more of ${entries.length}`;
    button.hidden = shown >= entries.length;
    if (more) more(entries.slice(0, shown));
  };
  holder.append(button);
  grow();
  return holder;
}

function openTrace(number, focus) {
  const data = readTrace(number);
  document.querySelectorAll("button[data-trace]").forEach((button) => {
    button.setAttribute("aria-current", String(button.dataset.trace === String(number)));
  });
  const groups = groupsOf(data);
  const search = make("input", { type: "search", autocomplete: "off" });
  const only = make("input", { type: "checkbox" });
  const heading = make("h3", { tabindex: "-1" }, "Sessions of ", make("bdi", {}, data.file));
  const holder = make("div", { class: "sessions" });
  const status = make("p", { role: "status", class: "quiet" });
  const buttonOf = (group) => make("button", { type: "button", onclick: (event) => {
    holder.querySelectorAll("button[aria-current]").forEach((one) => one.removeAttribute("aria-current"));
    event.currentTarget.setAttribute("aria-current", "true");
    openSession(data, group, true);
  } }, group.keyed ? "session " : "", make("bdi", {}, group.name), `, ${plural(group.rows.length, "exchange")}`,
  group.keyed && group.agents.length ? `, as ${group.agents.slice(0, 4).join(", ")}` : "", ...tally(group.findings));
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = groups.filter((group) => (!only.checked || group.findings.length) && words.every((word) => group.search.includes(word)));
    status.textContent = `${wanted.length} of ${groups.length} shown`;
    holder.replaceChildren(growingList("Sessions", wanted, SESSIONS_AT_ONCE, buttonOf));
  };
  search.addEventListener("input", apply);
  only.addEventListener("change", apply);
  apply();
  const left = data.left_out.rows ? make("p", {}, `${data.left_out.rows} exchanges are left out of this page to keep it small. All of them: `, make("code", {}, data.show)) : null;
  document.getElementById("session-list").replaceChildren(heading, ...(left ? [left] : []),
    make("fieldset", { class: "filter" }, make("legend", {}, "Find a session"),
      make("label", {}, "Session or agent ", search), make("label", {}, only, "with findings only")), status, holder);
  document.getElementById("exchange-view").replaceChildren(make("p", { class: "quiet" }, "Choose an exchange to see what it carried."));
  const first = groups[0].rows.length <= EXCHANGES_AT_ONCE ? groups[0] : groups.find((group) => group.keyed && group.findings.length) || groups[1] || groups[0];
  openSession(data, first, false);
  const chosen = holder.querySelectorAll("ol button")[groups.indexOf(first)];
  if (chosen) chosen.setAttribute("aria-current", "true");
  if (focus) heading.focus();
}

function openSession(data, group, focus) {
  const heading = make("h3", { tabindex: "-1" }, group.keyed ? "Session " : "", make("bdi", {}, group.name));
  const figure = make("figure", {});
  const buttonOf = (row) => {
    const findings = data.findings(row);
    return make("button", { type: "button", "data-seq": row[SEQ], onclick: () => openExchange(data, group, row, true) },
      make("bdi", {}, `#${row[SEQ]} ${data.text(row[METHOD])} ${data.text(row[PATH])}`),
      row[AGENT] < 0 ? "" : make("bdi", {}, ` as ${data.text(row[AGENT])}`), ` ${answerOf(data, row)}`, ...tally(findings));
  };
  const view = document.getElementById("session-view");
  view.replaceChildren(heading, figure);
  let rows = [];
  const draw = () => drawDiagram(figure, data, group, rows);
  view.append(make("h4", {}, "Exchanges"), growingList("Exchanges of the session", group.rows, EXCHANGES_AT_ONCE, buttonOf, (shown) => {
    rows = shown;
    draw();
  }));
  watchWidth(figure, draw);
  if (focus) heading.focus();
}

function answerOf(data, row) {
  const error = data.text(row[ERROR]), fault = data.text(row[FAULT]);
  const answer = row[STATUS] ? `${row[STATUS]}${error ? ` (${error})` : ""}` : `no answer${error ? ` (${error})` : ""}`;
  return `-> ${answer}, ${row[TOOK]} ms${fault ? ` [fault: ${fault}]` : ""}`;
}
