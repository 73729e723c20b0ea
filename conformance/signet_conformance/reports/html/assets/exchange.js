/* One exchange: what the step asked for, what was sent and answered, what is wrong with it and where. */

function drawExchange(data, group, row, at, focus) {
  shown.row = row;
  const place = group.rows.indexOf(row), findings = data.findings(row);
  const title = `#${row[SEQ]} ${data.text(row[METHOD])} ${data.text(row[PATH])}`;
  const heading = make("h3", { tabindex: "-1" }, make("bdi", {}, title));
  const step = (label, other) => make("button", { type: "button", disabled: !other, onclick: () => go(placeOf(data, group, other)) }, label);
  const back = make("button", { type: "button", onclick: () => {
    const button = document.querySelector(`#session-view button[data-seq="${row[SEQ]}"]`);
    (button || document.querySelector("#session-view h3")).focus();
  } }, "Back to the list");
  const [request, answer] = data.bodies[row[SEQ]] || [null, null];
  const link = make("a", { href: addressOf(placeOf(data, group, row, at)) }, "this exchange");
  const parts = [heading, make("div", { class: "buttons" }, step("Previous", group.rows[place - 1]), step("Next", group.rows[place + 1]), back),
    facts([["operation", data.text(row[OPERATION]) || "none of the contract"], ["session", data.text(row[KEY])], ["agent", data.text(row[AGENT])],
      ["at", `${row[BEGAN]} s`], ["answer", answerOf(data, row).slice(3)], ["step", stepBefore(data, row)],
      ["meanwhile", faultsDuring(data, row).join(", ")], ["sent by", sentBy(data, row)], ["address", link]]),
    ...findings.map((finding) => findingOf(data, group, row, finding)), copyButtons(data, row, request, findings)];
  if (request) parts.push(...messageOf("Request", request, "/request", at), ...(answer ? messageOf("Answer", answer, "/response", at) : []));
  else parts.push(make("p", {}, "What it carried is left out of this page to keep it small. To see it: "), make("p", {}, make("code", {}, `${data.show} --exchange ${row[SEQ]}`)));
  const view = document.getElementById("exchange-view");
  view.replaceChildren(make("div", { role: "region", "aria-label": "Exchange" }, parts));
  markChosen("#session-view button[data-seq]", (button) => button.dataset.seq === String(row[SEQ]));
  if (focus) heading.focus();
  const mark = view.querySelector("mark");
  // Where nobody asked for it, the page stays where it is.
  if (mark && focus) mark.scrollIntoView({ block: "nearest" });
}

/* What the user had done last when the exchange began: what was asked for, beside what was sent. */
function stepBefore(data, row) {
  const before = data.marks.filter((mark) => mark[2] === "step" && mark[0] < row[SEQ]);
  return before.length ? before[before.length - 1][3] : null;
}

/* The places in the connector's code that sent it, each a link where an editor can open it; "" where they are unknown. */
function sentBy(data, row) {
  const places = (data.sent[row[SEQ]] || []).map(([words, address], index) => [index ? ", called at " : "", address ? make("a", { href: address }, words) : words]);
  return places.length ? make("span", {}, places.flat()) : "";
}

function faultsDuring(data, row) {
  return spansOf(data, Infinity).filter(([, from, until]) => from <= row[BEGAN] && row[BEGAN] <= until).map(([what]) => what);
}

function findingOf(data, group, row, [verdict, requirement, message, pointer]) {
  const article = document.getElementById(requirement);
  const name = article ? make("a", { href: `#${requirement}` }, requirement) : requirement;
  const at = pointer ? make("a", { href: addressOf(placeOf(data, group, row, pointer)) }, make("code", {}, pointer)) : "";
  return make("p", {}, verdictTag(verdict), " ", name, " ", make("bdi", {}, message), at ? make("span", {}, " at ", at) : "",
    " (", make("code", {}, `signet-conformance explain ${requirement}`), ")");
}

/* `part` is where the message stands in its line of the trace; what `at` points to in it is opened, and with `open` the body. */
function messageOf(label, message, part, at, open = false) {
  const within = (name) => (at === `${part}/${name}` || at.startsWith(`${part}/${name}/`) ? at.slice(`${part}/${name}`.length) : null);
  const parts = [make("h4", {}, label)];
  if (message.query) parts.push(onDemand(`Query, ${plural(message.query.length, "parameter")}`, () => facts(message.query, "pairs"), within("query") !== null));
  parts.push(onDemand(`Headers, ${message.headers.length}`, () => facts(message.headers, "pairs"), within("headers") !== null));
  if (message.body === undefined) parts.push(make("p", { class: "quiet" }, "No body."));
  else {
    const inBody = within("body/json") !== null ? within("body/json") : within("body");
    parts.push(onDemand(`Body, ${message.kind}${message.note ? `, ${message.note}` : ""}`, () => bodyOf(label, message, inBody), open || inBody !== null));
  }
  return parts;
}

/* Made only when it is opened for the first time. */
function onDemand(label, content, open = false) {
  const details = make("details", { open, ontoggle: () => {
    if (details.open && details.children.length === 1) details.append(content());
  } }, make("summary", {}, label));
  if (open) details.append(content());
  return details;
}
