// The harness of connector.ts, played for the kit: a function for each step.

import { createDriver } from "signet-conformance";

import { Connector, type Session } from "./connector.js";

const connector = new Connector(process.env);

await createDriver<Session>({
  start: ({ project }) => connector.open(project ?? "/workspace"),
  prompt: async ({ text }, session) => ({ injected: await connector.prompt(session, text ?? "") }),
  answered: ({ text, reply }, session) => {
    session.turns.push(`User: ${text}`, `Assistant: ${reply ?? "Understood."}`);
  },
  resume: (_, session) => connector.begin(session ?? connector.create("/workspace")),
  end: async (_, session) => connector.close(session),
  flush: () => connector.flush(),
});
