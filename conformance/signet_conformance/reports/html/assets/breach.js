/* The request of a breach beside what is wrong with it, with the member marked: that of the first one at once, the others
   when they are asked for. */

function drawRequests() {
  document.querySelectorAll(".request:empty").forEach((holder, index) => {
    const { trace, exchange, of } = holder.dataset, at = holder.dataset.at || "", number = traceNumber(trace);
    if (number < 0) return;
    const part = at.startsWith("/response") ? "answer" : "request";
    const details = onDemand(`The ${part}, #${exchange}`, () => requestOf(number, exchange, part, at, of), index === 0);
    details.addEventListener("toggle", () => showMark(details));
    holder.append(details);
    showMark(details);
  });
}

function requestOf(number, exchange, part, at, requirement) {
  const data = readTrace(number), row = data.rows.find((it) => String(it[SEQ]) === exchange);
  const [request, answer] = data.bodies[exchange] || [null, null];
  const message = part === "answer" ? answer : request;
  if (!row || !message) {
    const missing = row && request ? "There was no answer." : "What it carried is left out of this page to keep it small. To see it: ";
    return make("p", { class: "quiet" }, missing, row && request ? "" : make("code", {}, `${data.show} --exchange ${exchange}`));
  }
  const label = `${part === "answer" ? "Answer" : "Request"} #${exchange} of ${requirement}`;
  const [, ...parts] = messageOf(label, message, part === "answer" ? "/response" : "/request", at, true);
  return make("div", {}, make("p", {}, make("bdi", {}, `${data.text(row[METHOD])} ${data.text(row[PATH])} ${answerOf(data, row)}`)), parts);
}

/* The marked line in the middle of its body; the page itself stays where it is. */
function showMark(details) {
  const mark = details.querySelector("mark"), body = mark && mark.closest("pre");
  if (body) body.scrollTop += mark.getBoundingClientRect().top - body.getBoundingClientRect().top - body.clientHeight / 2;
}

/* The place of the first breach, whose exchange the page opens on. */
function firstBreach() {
  const { trace, exchange, at } = (document.querySelector("#breaches .request") || { dataset: {} }).dataset;
  return trace === undefined ? null : { trace, exchange, at };
}
