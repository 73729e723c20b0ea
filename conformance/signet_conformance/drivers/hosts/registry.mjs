// Decides which handlers and tools of a plugin a harness takes, by the `registry` of its face. What it refuses is noted
// with the harness's own message.

const OPERATIONS = [
  [/compact/i, /after|post|complete|end|done/i, ["compaction-complete"]],
  [/compact/i, /before|pre|start|ing/i, ["pre-compaction"]],
  [/compact/i, /./, ["pre-compaction", "compaction-complete"]],
  [/prompt|message|input|chat/i, /./, ["user-prompt-submit"]],
  [/session|agent|turn/i, /end|stop|close|shutdown|delete/i, ["session-end"]],
  [/stop|shutdown|dispose/i, /./, ["session-end"]],
  [/session|agent|turn/i, /start|create|begin|open/i, ["session-start"]],
];

/** The daemon's operations that a handler of an event with this name most likely calls. */
export function operationsOf(event) {
  return OPERATIONS.find(([subject, moment]) => subject.test(event) && moment.test(event))?.[2] ?? [];
}

/** The scenarios' tools that take arguments. */
const WITH_FIELDS = [
  ...["memory_store", "memory_search", "memory_get", "memory_modify", "memory_forget", "memory_feedback"],
  ...["session_search", "secret_exec", "secret_exec_status", "agent_message_send"],
  ...["knowledge_expand", "lcm_expand", "mcp_server_call"],
];
const BARE = "its schema declares no field, so the model cannot know what to pass";

const withName = (words, name) => words.replaceAll("{name}", name);

export class Registry {
  #rules;
  #names;
  #rows = new Map();

  /** `names` maps the scenarios' names of tools to the target's own. */
  constructor(face, names = {}) {
    this.#rules = face.registry ?? {};
    this.#names = names;
  }

  /** What the harness refused, for the answer to `hello`. */
  get refused() {
    return [...this.#rows.values()];
  }

  get again() {
    return this.#rules.again;
  }

  get toolMode() {
    return this.#rules.tool_mode;
  }

  get noTools() {
    return this.#rules.no_tools;
  }

  get toolsThrow() {
    return this.#rules.tools?.throws ?? false;
  }

  get laterModes() {
    return this.#rules.later_modes ?? [];
  }

  refuse(file, words, more = {}) {
    this.#rows.set(`${file} ${words}`, { file, accepted: false, words, ...more });
  }

  /** Whether the harness calls a handler of an event. `all` has the events for which the plugin has handlers. */
  knows(event, all = []) {
    const { events, formerly = [], unknown_event: words = "never called" } = this.#rules;
    if (events === undefined || events.includes(event)) return true;
    const operations = operationsOf(event);
    const elsewhere = all.find((name) => events.includes(name) && operationsOf(name).some((each) => operations.includes(each)));
    const more = { event, operations, ...(elsewhere === undefined ? {} : { elsewhere }) };
    this.refuse(`a handler of ${event}`, withName(words, event), { ...more, ...(formerly.includes(event) ? { formerly: true } : {}) });
    return false;
  }

  /** The function that registers a plugin, from its module's default export; undefined if the harness finds none. */
  registrar(exported) {
    const forms = this.#rules.exports ?? ["function", "register", "activate"];
    if (typeof exported === "function") return forms.includes("function") ? exported : undefined;
    return forms.map((form) => exported?.[form]).find((method) => typeof method === "function");
  }

  get noExport() {
    return this.#rules.no_export;
  }

  /** Whether the harness offers a tool to its model. `known` has the names of the tools that it has taken already. */
  takesTool(name, tool, known) {
    const rules = this.#rules.tools ?? {};
    const words = this.#objection(name, tool, known, rules);
    if (words !== undefined) this.refuse(`the tool ${name || "without a name"}`, withName(words, name || "?"));
    else if (this.#isBare(name, tool)) this.refuse(`the tool ${name}`, BARE, { minor: true });
    return words === undefined;
  }

  /** Whether a tool to which scenarios pass arguments declares no field for them. */
  #isBare(name, tool) {
    if (typeof tool !== "object" || !WITH_FIELDS.some((known) => (this.#names[known] ?? known) === name)) return false;
    const fields = "args" in tool ? tool.args : tool.parameters?.type === "object" ? (tool.parameters.properties ?? {}) : undefined;
    return typeof fields === "object" && fields !== null && Object.keys(fields).length === 0;
  }

  #objection(name, tool, known, rules) {
    if (typeof name !== "string" || (rules.pattern !== undefined && !new RegExp(`^(?:${rules.pattern})$`).test(name))) return rules.ill_formed;
    if ((rules.reserved ?? []).includes(name)) return rules.reserved_words;
    if (rules.twice === "ignored" && known.has(name)) return rules.twice_words;
    // The host calls a function only later to get the tool.
    if (typeof tool === "function") return undefined;
    if (rules.needs_execute !== undefined && typeof tool?.execute !== "function") return rules.needs_execute;
    const schema = tool?.parameters;
    if (rules.schema_form !== undefined && (typeof schema !== "object" || schema === null || Array.isArray(schema))) return rules.schema_words;
    return undefined;
  }
}
