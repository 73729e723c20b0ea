/* Finds exchanges in all traces of the page: by words of what was sent and answered, operation, answer, agent,
   requirement, and by what the user or a fault was doing. */

const FOUND_AT_ONCE = 100, ANYTHING = "";

/* An entry for each exchange of the page, made when something is searched for the first time. */
let everything = null;

function entriesOfPage() {
  if (everything) return everything;
  everything = [];
  document.querySelectorAll("button[data-trace]").forEach((button) => {
    const data = readTrace(Number(button.dataset.trace));
    const spans = spansOf(data, Infinity), steps = data.marks.filter((mark) => mark[2] === "step");
    let next = 0, doing = "";
    for (const row of data.rows) {
      while (next < steps.length && steps[next][0] < row[SEQ]) doing = stepName(steps[next++]);
      const faults = spans.filter(([, from, until]) => from <= row[BEGAN] && row[BEGAN] <= until).map(([what]) => `fault ${what}`);
      everything.push({ data, row, during: doing ? [`step ${doing}`, ...faults] : faults });
    }
  });
  return everything;
}

function stepName(mark) {
  return mark[4] && mark[4].step ? String(mark[4].step) : mark[3].split(" ")[0];
}

function answerClass(row) {
  return row[STATUS] ? `${Math.floor(row[STATUS] / 100)}xx` : "no answer";
}

const FILTERS = [
  ["Operation", ({ data, row }) => [data.text(row[OPERATION]) || "none of the contract"]],
  ["Answer", ({ row }) => [answerClass(row), ...(row[STATUS] ? [String(row[STATUS])] : [])]],
  ["Agent", ({ data, row }) => (row[AGENT] < 0 ? [] : [data.text(row[AGENT])])],
  ["Breaches", ({ data, row }) => data.findings(row).map((finding) => finding[1])],
  ["During", ({ during }) => during],
];

/* All that an exchange says, in small letters; bodies that were left out of the page cannot be searched. */
function wordsOf(entry) {
  if (entry.words === undefined) {
    const { data, row } = entry, carried = data.bodies[row[SEQ]] || [];
    const said = carried.filter(Boolean).map((message) => `${message.body || ""} ${message.headers.flat().join(" ")} ${(message.query || []).flat().join(" ")}`);
    entry.words = [data.text(row[METHOD]), data.text(row[PATH]), data.text(row[KEY]) || "", ...said].join(" ").toLowerCase();
  }
  return entry.words;
}

function drawFind(holder) {
  const search = make("input", { type: "search", autocomplete: "off" });
  const status = make("p", { role: "status", class: "quiet" });
  const results = make("div", { class: "sessions" });
  const selects = FILTERS.map(([label, valuesOf]) => {
    const select = make("select", {}, make("option", { value: ANYTHING }, "any"));
    return { label, valuesOf, select };
  });
  const fill = () => {
    for (const { select, valuesOf } of selects) {
      if (select.options.length > 1) continue;
      const values = [...new Set(entriesOfPage().flatMap(valuesOf))].sort();
      select.append(...values.map((value) => make("option", { value }, value)));
    }
  };
  const entryOf = ({ data, row }) => make("a", { href: addressOf(placeOf(data, null, row)) },
    make("bdi", {}, data.name), " ", make("bdi", {}, `#${row[SEQ]} ${data.text(row[METHOD])} ${data.text(row[PATH])}`),
    ` ${answerOf(data, row)}`, ...tally(data.findings(row)));
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = selects.filter(({ select }) => select.value !== ANYTHING);
    if (!words.length && !wanted.length) {
      status.textContent = "";
      results.replaceChildren();
      return;
    }
    const found = entriesOfPage().filter((entry) => wanted.every(({ select, valuesOf }) => valuesOf(entry).includes(select.value))
      && words.every((word) => wordsOf(entry).includes(word)));
    status.textContent = `${plural(found.length, "exchange")} found`;
    results.replaceChildren(...(found.length ? [growingList("Exchanges found", found, FOUND_AT_ONCE, entryOf)] : []));
  };
  search.addEventListener("input", apply);
  selects.forEach(({ select }) => select.addEventListener("change", apply));
  holder.addEventListener("focusin", fill, { once: true });
  holder.addEventListener("pointerdown", fill, { once: true });
  holder.replaceChildren(make("fieldset", { class: "filter" }, make("legend", {}, "Find exchanges in all traces"),
    make("label", {}, "Words ", search), selects.map(({ label, select }) => make("label", {}, `${label} `, select))), status, results);
}
