/* A body in lines, each with the JSON pointer to what it holds. The text stays as it is: a number that JavaScript could
   not hold, or a body that was cut, is shown as it was recorded. Each member stands on a line of its own, by the report. */

const MEMBER = /^("(?:[^"\\]|\\.)*"): (.*)$/;

function linesWithPointers(text) {
  const open = [];
  return text.split("\n").map((line) => {
    const words = line.trim();
    if (/^[}\]],?$/.test(words)) return [line, open.length ? open.pop().pointer : ""];
    const around = open[open.length - 1];
    const member = around && !around.list ? MEMBER.exec(words) : null;
    let pointer = around ? around.pointer : "";
    if (around && around.list) pointer += `/${around.count++}`;
    else if (member) pointer += `/${keyOf(member[1]).replace(/~/g, "~0").replace(/\//g, "~1")}`;
    const value = member ? member[2] : words;
    if (value === "{" || value === "[") open.push({ pointer, list: value === "[", count: 0 });
    return [line, pointer];
  });
}

function keyOf(quoted) {
  try {
    return JSON.parse(quoted);
  } catch {
    return quoted;
  }
}

/* The place that `at` names, or the deepest one around it that is there. */
function nearest(lines, at) {
  for (let pointer = at; ; pointer = pointer.slice(0, pointer.lastIndexOf("/"))) {
    const index = lines.findIndex((line) => line[1] === pointer);
    if (index >= 0 || pointer === "") return [index, pointer];
  }
}

/* The lines of a body; the one that `at` points to is marked, a member that is not there has a line that says so. */
function bodyOf(label, message, at) {
  const about = { tabindex: "0", role: "region", "aria-label": `Body of the ${label.toLowerCase()}` };
  if (message.kind !== "json" || at === null) return make("pre", about, message.body);
  const lines = linesWithPointers(message.body);
  const [index, there] = nearest(lines, at);
  const parts = lines.flatMap(([line], place) => {
    if (place !== index) return [`${line}\n`];
    const name = keyOf(`"${at.slice(there.length + 1).replace(/~1/g, "/").replace(/~0/g, "~")}"`);
    if (there === at) return [make("mark", {}, line), "\n"];
    return [`${line}\n`, make("mark", { class: "absent" }, `${" ".repeat(there.split("/").length)}${name} is not there`), "\n"];
  });
  return make("pre", about, parts);
}
