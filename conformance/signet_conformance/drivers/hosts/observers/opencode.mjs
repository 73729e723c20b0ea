// A plugin for OpenCode that only writes down what it gets: each hook, and each event of the server.

import { events, tools, write } from "./written.mjs";

export default async function observer({ directory }) {
  const hooks = events.map((name) => [name, async (given, output) => write(name, given, output, directory)]);
  const event = async ({ event: { type, properties } }) => write(type, properties, undefined, directory);
  const offered = tools.map((name) => [name, { description: name, args: {}, execute: async () => "Nothing." }]);
  const tool = tools.length === 0 ? {} : { tool: Object.fromEntries(offered) };
  return { ...Object.fromEntries(hooks), ...tool, event };
}
