"use strict";

/* What a reader must see rather than obey: control, invisible and bidirectional characters. */
const UNSEEN = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

function visible(text) {
  return String(text).replace(UNSEEN, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

/* An element with attributes and children; a child that is not a node becomes text, never markup. */
function make(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "onclick" || name === "ontoggle") made.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) made.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child !== null) made.append(child instanceof Node ? child : visible(child));
  }
  return made;
}

function verdictTag(verdict) {
  return make("span", { class: "verdict", "data-verdict": verdict }, verdict);
}

function facts(rows, kind) {
  return make("dl", { class: kind ? `facts ${kind}` : "facts" }, rows.filter(([, value]) => value !== "" && value !== null).map(
    ([label, value]) => make("div", {}, make("dt", {}, label), make("dd", {}, value))));
}

/* What bears a kind is shown when the box of its kind is checked and it holds every word of the search. */
function filterBy(form) {
  const section = form.closest("section");
  const boxes = [...form.querySelectorAll("input[data-filter]")];
  const search = form.querySelector("input[type=search]");
  const entries = [...section.querySelectorAll("[data-kind]")].map((entry) => [entry, entry.textContent.toLowerCase()]);
  const count = section.querySelector(".count");
  const apply = () => {
    const wanted = new Set(boxes.filter((box) => box.checked).map((box) => box.dataset.filter));
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const [entry, text] of entries) {
      entry.hidden = !(wanted.has(entry.dataset.kind) && words.every((word) => text.includes(word)));
      shown += entry.hidden ? 0 : 1;
    }
    count.textContent = `${shown} of ${entries.length} shown`;
  };
  boxes.forEach((box) => box.addEventListener("change", apply));
  search.addEventListener("input", apply);
  apply();
}

document.querySelectorAll("fieldset.filter[data-entries]").forEach(filterBy);
