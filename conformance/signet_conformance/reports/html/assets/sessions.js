/* The traces of a run, the sessions of a trace, the exchanges of a session: each drawn when it is asked for. */

const SEQ = 0, BEGAN = 1, TOOK = 2, METHOD = 3, PATH = 4, OPERATION = 5, KEY = 6, AGENT = 7, STATUS = 8, ERROR = 9, FAULT = 10;
const WORST = ["ERROR", "FAIL", "WARN"];
const SESSIONS_AT_ONCE = 100, EXCHANGES_AT_ONCE = 200;

const traces = new Map();

/* The data of a trace, read once. */
function readTrace(number) {
  if (traces.has(number)) return traces.get(number);
  const data = JSON.parse(document.getElementById(`trace-${number}`).textContent);
  data.name = document.querySelector(`button[data-trace="${number}"]`).dataset.name;
  data.text = (index) => (index < 0 ? null : data.strings[index]);
  data.findings = (row) => data.found[row[SEQ]] || [];
  data.groups = groupsOf(data);
  traces.set(number, data);
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

/* How many entries of a list are drawn at once, though it shows a page at a time: as many as were there before. */
let fewest = 0;

/* Entries as a list that grows by a page at a time; after "Show more" the first new entry has the focus. */
function growingList(label, entries, perPage, entryOf, more) {
  const list = make("ol", { class: "entries", "aria-label": label });
  const holder = make("div", {}, list);
  let shown = 0;
  const button = make("button", { type: "button", onclick: () => {
    const first = shown;
    grow();
    list.children[first].querySelector("button, a").focus();
  } });
  const grow = (count = perPage) => {
    const next = entries.slice(shown, shown + count);
    next.forEach((entry) => list.append(make("li", {}, entryOf(entry))));
    shown += next.length;
    button.textContent = `Show ${Math.min(perPage, entries.length - shown)} more of ${entries.length}`;
    button.hidden = shown >= entries.length;
    if (more) more(entries.slice(0, shown));
  };
  holder.append(button);
  grow(Math.max(perPage, fewest));
  return holder;
}

function firstGroup(data) {
  const [all, ...others] = data.groups;
  return all.rows.length <= EXCHANGES_AT_ONCE ? all : others.find((group) => group.keyed && group.findings.length) || others[0] || all;
}

function markChosen(selector, isChosen) {
  document.querySelectorAll(selector).forEach((button) => {
    if (isChosen(button)) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  });
}

function drawTrace(number) {
  const data = readTrace(number), groups = data.groups;
  shown = { number, data, group: null, row: null };
  markChosen("button[data-trace]", (button) => button.dataset.trace === String(number));
  const search = make("input", { type: "search", autocomplete: "off" });
  const only = make("input", { type: "checkbox" });
  const heading = make("h3", { tabindex: "-1" }, "Sessions of ", make("bdi", {}, data.file));
  const holder = make("div", { class: "sessions" });
  const status = make("p", { role: "status", class: "quiet" });
  const buttonOf = (group) => make("button", { type: "button", "data-group": groups.indexOf(group),
    "aria-current": group === shown.group ? "true" : null, onclick: () => go(placeOf(data, group)) },
  group.keyed ? "session " : "", make("bdi", {}, group.name), `, ${plural(group.rows.length, "exchange")}`,
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
  const about = facts([["target", data.target], ["recorded", data.created], ["daemon", data.daemon], ["host", data.host], ["scenario", data.title]]);
  document.getElementById("session-list").replaceChildren(heading, about, ...(left ? [left] : []),
    make("fieldset", { class: "filter" }, make("legend", {}, "Find a session"),
      make("label", {}, "Session or agent ", search), make("label", {}, only, "with findings only")), status, holder);
  document.getElementById("exchange-view").replaceChildren(make("p", { class: "quiet" }, "Choose an exchange to see what it carried."));
}

let inTime = false;

function drawSession(data, group) {
  shown.group = group;
  shown.row = null;
  markChosen("#session-list button[data-group]", (button) => data.groups[button.dataset.group] === group);
  const heading = make("h3", { tabindex: "-1" }, group.keyed ? "Session " : "", make("bdi", {}, group.name));
  const figure = make("figure", {});
  const buttonOf = (row) => make("button", { type: "button", "data-seq": row[SEQ], onclick: () => go(placeOf(data, group, row)) },
    make("bdi", {}, `#${row[SEQ]} ${data.text(row[METHOD])} ${data.text(row[PATH])}`),
    row[AGENT] < 0 ? "" : make("bdi", {}, ` as ${data.text(row[AGENT])}`), ` ${answerOf(data, row)}`, ...tally(data.findings(row)));
  const view = document.getElementById("session-view");
  let rows = [];
  const redraw = () => (inTime ? drawWaterfall : drawDiagram)(figure, data, group, rows);
  view.replaceChildren(heading, choiceOfDrawing(redraw), figure);
  view.append(make("h4", {}, "Exchanges"), growingList("Exchanges of the session", group.rows, EXCHANGES_AT_ONCE, buttonOf, (listed) => {
    rows = listed;
    redraw();
  }));
  watchWidth(figure, redraw);
}

function choiceOfDrawing(redraw) {
  const choice = (label, chosen) => {
    const radio = make("input", { type: "radio", name: "drawing", checked: inTime === chosen });
    radio.addEventListener("change", () => {
      inTime = chosen;
      redraw();
    });
    return make("label", {}, radio, label);
  };
  return make("fieldset", { class: "filter" }, make("legend", {}, "Draw"), choice("in sequence", false), choice("in time", true));
}

function answerOf(data, row) {
  const error = data.text(row[ERROR]), fault = data.text(row[FAULT]);
  const answer = row[STATUS] ? `${row[STATUS]}${error ? ` (${error})` : ""}` : `no answer${error ? ` (${error})` : ""}`;
  return `-> ${answer}, ${row[TOOK]} ms${fault ? ` [fault: ${fault}]` : ""}`;
}
