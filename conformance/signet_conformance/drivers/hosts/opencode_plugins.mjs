// The plugins of a module for OpenCode: which functions they are, and their hooks in each project.

import { NotLoaded, reportAbout } from "./protocol.mjs";

/**
 * The plugins of a module: the server of its default export, or else each function that it exports, once.
 *
 * Those are OpenCode's two interfaces of plugins.
 */
function pluginsOf(module) {
  const { default: own } = module;
  if (typeof own === "object" && own !== null && ("id" in own || "server" in own)) {
    if (own.server !== undefined && typeof own.server !== "function") throw new NotLoaded("the plugin has invalid server export");
    if (own.server === undefined) throw new NotLoaded("the plugin must default export an object with server()");
    if (typeof own.id !== "string" || own.id.trim() === "") throw new NotLoaded("a path plugin must export id");
    return [own.server];
  }
  return [...new Set(Object.values(module))].map((exported) => {
    const plugin = typeof exported === "function" ? exported : exported?.server;
    if (typeof plugin !== "function") throw new NotLoaded("Plugin export is not a function");
    return plugin;
  });
}

export class Plugins {
  #functions;
  #registry;
  #calls;
  #messagesOf;
  /** The hooks of each plugin, by project. */
  #instances = new Map();

  /** `messagesOf(id)` returns the messages of a session, for a plugin that asks the server for them. */
  constructor(module, registry, calls, messagesOf) {
    this.#functions = pluginsOf(module);
    this.#registry = registry;
    this.#calls = calls;
    this.#messagesOf = messagesOf;
  }

  /** The hooks of all plugins in all projects. */
  get allHooks() {
    return [...this.#instances.values()].flat();
  }

  /** The hooks of each plugin for a project, in which it is loaded at the first call. */
  async hooksIn(directory) {
    if (!this.#instances.has(directory)) {
      const loaded = [];
      for (const plugin of this.#functions) {
        const hooks = await this.#calls.call("load", plugin, this.#input(directory));
        if (typeof hooks === "object" && hooks !== null) loaded.push(hooks);
      }
      this.#instances.set(directory, loaded);
      if (this.#instances.size === 1) await this.#reportRegistered(loaded);
    }
    return this.#instances.get(directory);
  }

  /** Report which hooks and tools of the first instance the server registers. */
  async #reportRegistered(loaded) {
    const counts = { handlers: 0, tools: 0, others: 0, refused: 0 };
    for (const hooks of loaded) {
      const names = Object.keys(hooks).filter((name) => hooks[name] !== undefined);
      for (const name of names) {
        if (typeof hooks[name] !== "function") counts.others += name === "tool" ? 0 : 1;
        else if (this.#registry.knows(name, names)) counts.handlers += 1;
        else counts.refused += 1;
      }
      for (const [name, tool] of Object.entries(hooks.tool ?? {})) {
        if (this.#registry.takesTool(name, tool, new Map())) counts.tools += 1;
        else counts.refused += 1;
      }
    }
    const doubled = loaded.slice(1).some((hooks) => Object.keys(hooks).some((name) => name in loaded[0]));
    const words = "each function that the module exports is a plugin: their hooks run one after the other";
    if (doubled) this.#registry.refuse("a second plugin", words);
    await reportAbout({ installed: this.#registry.refused, registered: [counts] });
  }

  /** The argument that a plugin gets when it is loaded. */
  #input(directory) {
    const messages = async ({ path }) => {
      const data = structuredClone(this.#messagesOf(path.id));
      return data === undefined ? { error: { name: "NotFoundError", data: { message: path.id } } } : { data };
    };
    const get = async ({ path }) => ({ data: { id: path.id, directory } });
    const client = { session: { messages, get }, app: { log: async () => ({ data: true }) } };
    const project = { id: "global", worktree: directory, time: { created: Date.now() } };
    const serverUrl = new URL("http://127.0.0.1:4096");
    return { client, project, directory, worktree: directory, serverUrl, $: globalThis.Bun?.$, experimental_workspace: undefined };
  }
}
