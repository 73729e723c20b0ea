/* A session in time: a bar an exchange from its first byte to its end, the declared bounds, the faults and the steps. */

const BAR = 22, AXIS = 26, NARROWEST = 2;

/* What was switched on and off between two moments, by the marks: [name, from, to]. */
function spansOf(data, end) {
  const spans = [], open = new Map();
  for (const [, at, name, said, told] of data.marks) {
    if (!["fault", "outage", "bypass"].includes(name)) continue;
    const what = told && told.kind ? told.kind : name, key = told && told.id !== undefined ? `${name} ${told.id}` : `${name} ${what}`;
    if (told && told.on === false) {
      const began = open.get(key);
      if (began) spans.push([began[0], began[1], at]);
      open.delete(key);
    } else open.set(key, [what, at, said]);
  }
  return [...spans, ...[...open.values()].map(([what, at]) => [what, at, end])];
}

/* Round distances between the marks of an axis, at most eight of them. */
function tickOf(length) {
  const rough = length / 8, power = 10 ** Math.floor(Math.log10(rough || 1));
  return [1, 2, 5, 10].map((times) => times * power).find((tick) => tick >= rough);
}

function boundOf(data, row) {
  const name = { "session-start": "start", "user-prompt-submit": "prompt" }[data.text(row[OPERATION])];
  return name && data.bounds[name] ? data.bounds[name] : null;
}

function drawWaterfall(figure, data, group, rows) {
  const width = Math.max(280, Math.min(figure.clientWidth || 600, 900));
  const label = Math.min(260, Math.floor(width * .42)), room = width - label - 12;
  const entries = entriesOf(data, group, rows);
  const times = [...rows.flatMap((row) => [row[BEGAN], row[BEGAN] + row[TOOK] / 1000]), ...entries.map(([, row, mark]) => (row ? row[BEGAN] : mark[1]))];
  const from = Math.min(...times), until = Math.max(...times, from + .001);
  const x = (at) => label + Math.max(0, Math.min(1, (at - from) / (until - from))) * room;
  const height = AXIS + entries.length * BAR + 10;
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `${plural(rows.length, "exchange")} in ${(until - from).toFixed(3)} seconds. The list below says the same.` });
  for (const [what, began, ended] of spansOf(data, until)) {
    if (ended < from || began > until) continue;
    svg.append(draw("g", { class: "span" }, draw("title", {}, `fault: ${what}`),
      draw("rect", { x: x(began), y: AXIS - 6, width: Math.max(NARROWEST, x(ended) - x(began)), height: height - AXIS })));
  }
  const tick = tickOf(until - from), digits = Math.max(0, -Math.floor(Math.log10(tick)));
  for (let at = 0; at <= until - from; at += tick) {
    const text = `${at.toFixed(digits)} s`, place = x(from + at);
    svg.append(draw("line", { class: "grid", x1: place, x2: place, y1: AXIS - 6, y2: height }));
    if (place + text.length * LETTER < width) svg.append(draw("text", { class: "quiet", x: place + 3, y: 14 }, text));
  }
  entries.forEach(([, row, mark], index) => {
    const y = AXIS + index * BAR;
    svg.append(row ? barOf(data, group, row, y, x, label, width) : stepLine(mark, y, x, label, height));
  });
  figure.replaceChildren(svg, make("figcaption", {}, captionOf(data, rows, group)));
}

function captionOf(data, rows, group) {
  const which = rows.length < group.rows.length ? `The first ${rows.length} of ${group.rows.length} exchanges` : plural(rows.length, "exchange");
  const bounds = Object.entries(data.bounds).map(([name, seconds]) => `${name} ${seconds} s`).join(", ");
  return `${which} in time. Shaded: while a fault was on.${bounds ? ` A short upright line: the declared bound (${bounds}).` : ""}`;
}

function barOf(data, group, row, y, x, label, width) {
  const worst = worstOf(data.findings(row)), cls = worst === "WARN" ? "call warned" : worst ? "call failed" : "call";
  const name = data.text(row[OPERATION]) || `${data.text(row[METHOD])} ${data.text(row[PATH])}`;
  const began = x(row[BEGAN]), ended = x(row[BEGAN] + row[TOOK] / 1000);
  const bar = draw("g", { class: row[STATUS] ? cls : `${cls} unanswered` },
    draw("rect", { class: "ground", x: 0, y, width, height: BAR }),
    draw("title", {}, `#${row[SEQ]} ${name} ${answerOf(data, row)}`),
    draw("text", { x: 4, y: y + 15 }, draw("tspan", { class: "found" }, worst ? `${worst} ` : ""),
      clipped(`#${row[SEQ]} ${name}`, label - 10 - (worst ? (worst.length + 1) * LETTER : 0))),
    draw("rect", { class: "bar", x: began, y: y + 5, width: Math.max(NARROWEST, ended - began), height: BAR - 10, rx: 2 }));
  const bound = boundOf(data, row);
  if (bound !== null && x(row[BEGAN] + bound) < width - 13) {
    bar.append(draw("line", { class: "bound", x1: x(row[BEGAN] + bound), x2: x(row[BEGAN] + bound), y1: y + 1, y2: y + BAR - 1 }));
  }
  bar.addEventListener("click", () => go(placeOf(data, group, row)));
  return bar;
}

function stepLine(mark, y, x, label, height) {
  return draw("g", {}, draw("line", { class: "grid", x1: x(mark[1]), x2: x(mark[1]), y1: y + 4, y2: height }),
    draw("text", { class: "quiet", x: 4, y: y + 15 }, clipped(markWords(mark), label - 8)));
}
