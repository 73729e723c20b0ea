/* The keyboard: j and k to the next and the previous exchange, n and p to the next and the previous one with a finding.
   And the printer, which sees all that is folded. At last the place that the address names is shown. */

const STEPS = { j: [1, false], k: [-1, false], n: [1, true], p: [-1, true] };

function walk([direction, onlyBroken]) {
  const { data, group, row } = shown;
  if (!group) return;
  let place = row ? group.rows.indexOf(row) : direction > 0 ? -1 : group.rows.length;
  do place += direction; while (group.rows[place] && onlyBroken && !data.findings(group.rows[place]).length);
  if (group.rows[place]) go(placeOf(data, group, group.rows[place]));
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, select, textarea");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !STEPS[event.key]) return;
  event.preventDefault();
  walk(STEPS[event.key]);
});

window.addEventListener("beforeprint", () => {
  document.querySelectorAll("details:not([open])").forEach((details) => {
    details.dataset.folded = "";
    details.open = true;
    details.dispatchEvent(new Event("toggle"));  // its content must be there before the pages are laid out
  });
});
window.addEventListener("afterprint", () => {
  document.querySelectorAll("details[data-folded]").forEach((details) => {
    delete details.dataset.folded;
    details.open = false;
  });
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-trace]");
  if (button) go({ trace: button.dataset.name });
});

/* The exchange of the first breach; without one the first trace that has a breach, else the first that holds anything. */
function showFirst() {
  const breach = firstBreach();
  if (breach && traceNumber(breach.trace) >= 0 && show(breach, false)) return;
  const rows = [...document.querySelectorAll("#sessions tbody tr")];
  const first = (columns) => rows.findIndex((row) => columns.some((column) => row.cells[column].textContent !== "0"));
  const number = [first([1]), first([2]), first([3]), 0].find((index) => index >= 0);
  if (!document.getElementById(`trace-${number}`)) return;
  drawTrace(number);
  drawSession(shown.data, firstGroup(shown.data));
}

document.getElementById("sessions").classList.add("drawn");
drawRequests();
drawFind(document.getElementById("find"));
if (readAddress().trace === undefined || !show(readAddress(), true)) showFirst();
