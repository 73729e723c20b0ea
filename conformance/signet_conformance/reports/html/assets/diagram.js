/* A session as a sequence diagram: the connector on the left, the daemon on the right, time downwards. */

const SVG = "http://www.w3.org/2000/svg";
const ROW = 54, BAND = 30, HEAD = 40, SIDE = 46, LETTER = 7.9;

function draw(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  for (const child of children) made.append(child instanceof Node ? child : visible(child));
  return made;
}

function clipped(text, room) {
  const letters = Math.max(4, Math.floor(room / LETTER));
  return text.length > letters ? text.slice(0, letters - 1) + "…" : text;
}

/* Marks stand among the exchanges by their number; those before the first and after the last one are another session's. */
function entriesOf(data, group, rows) {
  if (!rows.length) return [];
  const whole = group.rows === data.rows;
  const last = rows[rows.length - 1][SEQ], end = whole && rows.length === data.rows.length ? Infinity : last;
  // Where a request was sent from stands with its findings.
  const marks = data.marks.filter((mark) => (whole || mark[0] > rows[0][SEQ]) && mark[0] < end && mark[2] !== "sent");
  return [...rows.map((row) => [row[SEQ], row, null]), ...marks.map((mark) => [mark[0], null, mark])].sort((a, b) => a[0] - b[0]);
}

function drawDiagram(figure, data, group, rows) {
  const width = Math.max(280, Math.min(figure.clientWidth || 600, 900));
  const entries = entriesOf(data, group, rows);
  const height = HEAD + entries.reduce((sum, [, row]) => sum + (row ? ROW : BAND), 0) + 16;
  const left = SIDE, right = width - SIDE, room = right - left - 16;
  const found = group.findings.length;
  const label = `Sequence of ${plural(rows.length, "exchange")} between connector and daemon, ${plural(found, "finding")}. The list below says the same.`;
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (const [x, name] of [[left, "connector"], [right, "daemon"]]) {
    svg.append(draw("line", { class: "life", x1: x, x2: x, y1: HEAD - 6, y2: height - 8 }));
    svg.append(draw("text", { class: "head", x, y: 22, "text-anchor": "middle" }, name));
  }
  let y = HEAD;
  for (const [, row, mark] of entries) {
    if (row) svg.append(drawCall(data, group, row, y, left, right, room));
    else svg.append(...drawMark(mark, y, width));
    y += row ? ROW : BAND;
  }
  const shown = rows.length < group.rows.length ? `The first ${rows.length} of ${group.rows.length} exchanges.` : plural(rows.length, "exchange");
  figure.replaceChildren(svg, make("figcaption", {}, shown));
}

function drawCall(data, group, row, y, left, right, room) {
  const findings = data.findings(row), worst = worstOf(findings);
  const cls = worst === "WARN" ? "call warned" : worst ? "call failed" : "call";
  const name = data.text(row[OPERATION]) || `${data.text(row[METHOD])} ${data.text(row[PATH])}`;
  const agent = group.agents.length > 1 ? data.text(row[AGENT]) : null;
  const badge = worst ? `${worst} ` : "";
  const text = clipped(`#${row[SEQ]} ${name}${agent ? ` as ${agent}` : ""}`, room - badge.length * LETTER);
  const call = draw("g", { class: cls },
    draw("rect", { class: "ground", x: 0, y, width: right + SIDE, height: ROW }),
    draw("text", { x: left + 8, y: y + 14 }, draw("tspan", { class: "found" }, badge), text),
    draw("line", { x1: left, x2: right - 8, y1: y + 21, y2: y + 21 }),
    draw("path", { class: "tip", d: `M${right},${y + 21} l-9,-4.5 v9 z` }));
  const answer = clipped(answerOf(data, row).slice(3), room);
  call.append(draw("text", { class: "quiet", x: right - 8, y: y + 38, "text-anchor": "end" }, answer));
  if (row[STATUS]) {
    call.append(draw("line", { class: "answer", x1: left + 8, x2: right, y1: y + 44, y2: y + 44 }),
      draw("path", { class: "tip", d: `M${left},${y + 44} l9,-4.5 v9 z` }));
  } else {
    call.append(draw("text", { class: "found", x: right - 8, y: y + 50, "text-anchor": "end" }, "×"));
  }
  call.addEventListener("click", () => go(placeOf(data, group, row)));
  return call;
}

/* Of a step the page has what was asked for; any other mark says all by itself. */
function markWords(mark) {
  return mark[2] === "step" ? `step ${mark[3]}` : mark[3];
}

function drawMark(mark, y, width) {
  const text = clipped(markWords(mark), width - 24);
  return [draw("rect", { class: "band", x: 6, y: y + 4, width: width - 12, height: BAND - 8, rx: 4 }),
    draw("text", { class: "quiet", x: width / 2, y: y + 19, "text-anchor": "middle" }, text)];
}

let watcher = null;

/* Draws again when the width has changed; only the diagram that is shown is watched. */
function watchWidth(figure, redraw) {
  if (watcher) watcher.disconnect();
  let known = figure.clientWidth;
  watcher = new ResizeObserver(() => {
    if (Math.abs(figure.clientWidth - known) < 2) return;
    known = figure.clientWidth;
    redraw();
  });
  watcher.observe(figure);
}
