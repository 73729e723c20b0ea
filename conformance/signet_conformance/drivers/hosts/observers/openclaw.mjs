// A plugin for OpenClaw that only writes down the events it gets.

import { events, tools, write } from "./written.mjs";

export default {
  id: "signet-conformance-observer",
  register(api) {
    const execute = async () => ({ content: [{ type: "text", text: "Nothing." }] });
    for (const name of tools) api.registerTool({ name, label: name, description: name, parameters: {}, execute });
    // There is no folder to write: a session works in the workspace of its agent, not in a project.
    for (const name of events) api.on(name, (given) => write(name, given));
  },
};
