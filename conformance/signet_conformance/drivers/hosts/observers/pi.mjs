// An extension for pi and oh-my-pi that only writes down the events it gets.

import { events, tools, write } from "./written.mjs";

export default function observer(pi) {
  const answer = async () => ({ content: [{ type: "text", text: "Nothing." }], details: {} });
  for (const name of tools) pi.registerTool({ name, label: name, description: name, execute: answer });
  for (const name of events) {
    pi.on(name, ({ type, ...given }, { cwd }) => write(name, given, undefined, cwd));
  }
}
