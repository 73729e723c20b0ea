// Made from schemas/driver/signet-adapter-1.schema.json by `npm run types`; not to be changed by hand.

/**
 * A call by which the kit, as the harness, asks a RuntimeAdapterServer: the method, and the JSON object that is posted to the method's path. A member that the harness does not know is left out. docs/driver-protocol.md says when each method is called.
 */
export type Call = {
  [k: string]: unknown;
} & {
  method: "onSessionStart" | "onUserPromptSubmit" | "onSessionEnd" | "onPreCompaction" | "onCompactionComplete";
  params: {
    sessionKey: string;
    agentId?: string;
    /**
     * An absolute path.
     */
    project?: string;
    source?: "startup" | "resume" | "clear";
    prompt?: string;
    /**
     * The model's last words in this context; for onUserPromptSubmit.
     */
    lastAssistantMessage?: string;
    reason?: "exit" | "clear";
    /**
     * Lines that begin with User: or Assistant:.
     */
    transcript?: string;
    messageCount?: number;
    summary?: string;
  };
};
