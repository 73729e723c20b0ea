// What a harness takes of a plugin and what it refuses, by the registry of its face, in the harness's own words.

const OPERATIONS = [
  [/compact/i, /after|post|complete|end|done/i, ["compaction-complete"]],
  [/compact/i, /before|pre|start|ing/i, ["pre-compaction"]],
  [/compact/i, /./, ["pre-compaction", "compaction-complete"]],
  [/prompt|message|input|chat/i, /./, ["user-prompt-submit"]],
  [/session|agent|turn/i, /end|stop|close|shutdown|delete/i, ["session-end"]],
  [/stop|shutdown|dispose/i, /./, ["session-end"]],
  [/session|agent|turn/i, /start|create|begin|open/i, ["session-start"]],
];

/** The operations of the daemon that a handler of an event of that name is most likely for. */
export function operationsOf(event) {
  return OPERATIONS.find(([what, when]) => what.test(event) && when.test(event))?.[2] ?? [];
}

/** The words of a face with a name in them. */
const filled = (words, name) => words.replaceAll("{name}", name);

export class Registry {
  #rules;
  #rows = new Map();

  constructor(face) {
    this.#rules = face.registry ?? {};
  }

  /** What the harness refused, for the answer to `hello`. */
  get refused() {
    return [...this.#rows.values()];
  }

  get again() {
    return this.#rules.again;
  }

  get laterModes() {
    return this.#rules.later_modes ?? [];
  }

  refuse(file, words, more = {}) {
    this.#rows.set(`${file} ${words}`, { file, accepted: false, words, ...more });
  }

  /** Whether the harness calls a handler for that event; `all` are the events that the plugin has handlers for. */
  knows(event, all = []) {
    const { events, unknown_event: words } = this.#rules;
    if (events === undefined || words === undefined || events.includes(event)) return true;
    const operations = operationsOf(event);
    const elsewhere = all.find((one) => events.includes(one) && operationsOf(one).some((each) => operations.includes(each)));
    const told = { event, operations, ...(elsewhere === undefined ? {} : { elsewhere }) };
    this.refuse(`a handler of ${event}`, filled(words, event), told);
    return false;
  }

  /** What registers a plugin, from its module's default export; undefined where it has none of the harness's forms. */
  registrar(exported) {
    const forms = this.#rules.exports ?? ["function", "register", "activate"];
    if (typeof exported === "function") return forms.includes("function") ? exported : undefined;
    return forms.map((form) => exported?.[form]).find((method) => typeof method === "function");
  }

  get noExport() {
    return this.#rules.no_export;
  }

  /** Whether the harness offers a tool of that name to its model; `known` are those that it has taken. */
  takesTool(name, tool, known) {
    const rules = this.#rules.tools ?? {};
    const words = this.#objection(name, tool, known, rules);
    if (words !== undefined) this.refuse(`the tool ${name || "without a name"}`, filled(words, name || "?"));
    return words === undefined;
  }

  #objection(name, tool, known, rules) {
    if (typeof name !== "string" || (rules.pattern !== undefined && !new RegExp(`^(?:${rules.pattern})$`).test(name))) return rules.ill_formed;
    if ((rules.reserved ?? []).includes(name)) return rules.reserved_words;
    if (rules.twice === "ignored" && known.has(name)) return rules.twice_words;
    // What a function makes of a tool is known only when it is called.
    if (typeof tool === "function") return undefined;
    if (rules.needs_execute !== undefined && typeof tool?.execute !== "function") return rules.needs_execute;
    const schema = tool?.parameters;
    if (rules.schema_form !== undefined && (typeof schema !== "object" || schema === null || Array.isArray(schema))) return rules.schema_words;
    return undefined;
  }
}
