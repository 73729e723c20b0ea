// An extension of pi and oh-my-pi that changes nothing and writes down what it is told.

import { events, tools, write } from "./written.mjs";

export default function observer(pi) {
  const answer = async () => ({ content: [{ type: "text", text: "Nothing." }], details: {} });
  for (const name of tools) pi.registerTool({ name, label: name, description: name, execute: answer });
  for (const name of events) {
    pi.on(name, ({ type, ...given }, { cwd }) => write(name, given, undefined, cwd));
  }
}
