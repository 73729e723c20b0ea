/* A page that grows: asks its own server for later states, takes over what they hold, and stays where its reader is. */

async function follow() {
  const status = document.getElementById("live");
  let version = Number(status.dataset.version);
  for (;;) {
    let told;
    try {
      told = await (await fetch(`version?after=${version}`)).json();
    } catch {
      status.textContent = "No longer live: its server has ended. What is shown stays.";
      return;
    }
    if (told.version > version) {
      version = told.version;
      takeOver(new DOMParser().parseFromString(await (await fetch("")).text(), "text/html"));
      status.textContent = `Live: ${plural(told.exchanges, "exchange")}.${told.new.length ? ` New: ${visible(told.new[0])}${told.new.length > 1 ? ` and ${told.new.length - 1} more` : ""}` : ""}`;
    }
    if (told.ended) status.textContent = "The recording has ended.";
    if (told.ended) return;
  }
}

/* Text and data of the later page; nothing in a parsed document runs. */
function takeOver(later) {
  document.querySelector("header").replaceWith(document.adoptNode(later.querySelector("header")));
  document.querySelector("nav").replaceWith(document.adoptNode(later.querySelector("nav")));
  const sections = [...later.querySelectorAll("main > section")], main = document.getElementById("main");
  for (const old of [...main.children]) {
    if (!sections.some((section) => section.id === old.id)) old.remove();
  }
  let before = null;
  for (const section of sections) {
    let here = document.getElementById(section.id);
    if (section.id === "sessions" && here) {
      here.querySelector("tbody").replaceWith(document.adoptNode(section.querySelector("tbody")));
    } else {
      const asked = here ? [...here.querySelectorAll("input")].map((input) => [input.checked, input.value]) : [];
      const taken = document.adoptNode(section);
      if (here) here.replaceWith(taken);
      else if (before) before.after(taken);
      else main.prepend(taken);
      here = taken;
      [...here.querySelectorAll("input")].forEach((input, index) => {
        if (asked[index]) [input.checked, input.value] = asked[index];
      });
      here.querySelectorAll("fieldset.filter[data-entries]").forEach(filterBy);
    }
    before = here;
  }
  document.querySelectorAll("script[type='application/json']").forEach((block) => block.remove());
  document.body.append(...[...later.querySelectorAll("script[type='application/json']")].map((block) => document.adoptNode(block)));
  traces.clear();
  drawRequests();
  redrawAll();
}

/* The same trace, session and exchange as before, with the focus where it was. */
function redrawAll() {
  const { data, group, row } = shown;
  const at = readAddress().at, focused = document.activeElement && document.activeElement.dataset.seq;
  const place = data ? placeOf(data, group, row, at) : {};
  const listed = group ? document.querySelectorAll("#session-view button[data-seq]").length : 0;
  const all = group && listed >= group.rows.length;
  traces.clear();
  everything = null;
  shown = { number: -1, data: null, group: null, row: null };
  fewest = all ? Infinity : listed;
  if (!data || !show(place, false)) showFirst();
  fewest = 0;
  const button = focused && document.querySelector(`#session-view button[data-seq="${focused}"]`);
  if (button) button.focus();
}

follow();
