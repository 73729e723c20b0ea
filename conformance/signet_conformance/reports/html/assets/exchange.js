/* One exchange: facts, findings, and on demand what was said. */

function openExchange(data, group, row, focus) {
  const place = group.rows.indexOf(row);
  const title = `#${row[SEQ]} ${data.text(row[METHOD])} ${data.text(row[PATH])}`;
  const heading = make("h3", { tabindex: "-1" }, make("bdi", {}, title));
  const step = (label, index) => make("button", { type: "button", disabled: !group.rows[index], onclick: () => openExchange(data, group, group.rows[index], true) }, label);
  const back = make("button", { type: "button", onclick: () => {
    const button = document.querySelector(`#session-view button[data-seq="${row[SEQ]}"]`);
    (button || document.querySelector("#session-view h3")).focus();
  } }, "Back to the list");
  const carried = data.bodies[row[SEQ]];
  const parts = [heading, make("div", { class: "buttons" }, step("Previous", place - 1), step("Next", place + 1), back),
    facts([["operation", data.text(row[OPERATION]) || "none of the contract"], ["session", data.text(row[KEY])], ["agent", data.text(row[AGENT])],
      ["at", `${row[BEGAN]} s`], ["answer", answerOf(data, row).slice(3)]]),
    ...data.findings(row).map(findingOf)];
  if (carried) parts.push(...messageOf("Request", carried[0]), ...(carried[1] ? messageOf("Answer", carried[1]) : []));
  else parts.push(make("p", {}, "What it carried is left out of this page to keep it small. To see it: "), make("p", {}, make("code", {}, `${data.show} --exchange ${row[SEQ]}`)));
  document.getElementById("exchange-view").replaceChildren(make("div", { role: "region", "aria-label": "Exchange" }, parts));
  document.querySelectorAll("#session-view button[data-seq]").forEach((button) => {
    if (button.dataset.seq === String(row[SEQ])) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  });
  if (focus) heading.focus();
}

function findingOf([verdict, requirement, message, pointer]) {
  const article = document.getElementById(requirement);
  const name = article ? make("a", { href: `#${requirement}` }, requirement) : requirement;
  return make("p", {}, verdictTag(verdict), " ", name, " ", make("bdi", {}, message), pointer ? make("span", {}, " at ", make("code", {}, pointer)) : "",
    " (", make("code", {}, `signet-conformance explain ${requirement}`), ")");
}

function messageOf(label, message) {
  const parts = [make("h4", {}, label)];
  if (message.query) parts.push(onDemand(`Query, ${plural(message.query.length, "parameter")}`, () => facts(message.query, "pairs")));
  parts.push(onDemand(`Headers, ${message.headers.length}`, () => facts(message.headers, "pairs")));
  if (message.body === undefined) parts.push(make("p", { class: "quiet" }, "No body."));
  else {
    parts.push(onDemand(`Body, ${message.kind}${message.note ? `, ${message.note}` : ""}`, () =>
      make("pre", { tabindex: "0", role: "region", "aria-label": `Body of the ${label.toLowerCase()}` }, message.body)));
  }
  return parts;
}

/* Made only when it is opened for the first time. */
function onDemand(label, content) {
  const details = make("details", { ontoggle: () => {
    if (details.open && details.children.length === 1) details.append(content());
  } }, make("summary", {}, label));
  return details;
}

document.getElementById("sessions").classList.add("drawn");
document.querySelectorAll("button[data-trace]").forEach((button) => {
  button.addEventListener("click", () => openTrace(Number(button.dataset.trace), true));
});
if (document.getElementById("trace-0")) {
  const rows = [...document.querySelectorAll("#sessions tbody tr")];
  const first = (columns) => rows.findIndex((row) => columns.some((column) => row.cells[column].textContent !== "0"));
  openTrace([first([1]), first([2]), first([3]), 0].find((index) => index >= 0), false);
}
