// A plugin of OpenClaw that changes nothing and writes down what it is told.

import { events, tools, write } from "./written.mjs";

export default {
  id: "signet-conformance-observer",
  register(api) {
    const execute = async () => ({ content: [{ type: "text", text: "Nothing." }] });
    for (const name of tools) api.registerTool({ name, label: name, description: name, parameters: {}, execute });
    // No folder is told: a session works in the workspace of its agent, and not in a project.
    for (const name of events) api.on(name, (given) => write(name, given));
  },
};
