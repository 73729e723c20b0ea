// Made from schemas/driver/signet-driver-1.schema.json by `npm run types`; not to be changed by hand.

/**
 * A request of the kit on standard input, or an answer or event of the driver program on standard output: one JSON object a line. docs/driver-protocol.md tells what each means.
 */
export type Line = Request | Answer | Event;
export type Request =
  | {
      id: Id;
      op: "hello";
      events?: string[];
      [k: string]: unknown;
    }
  | {
      id: Id;
      op: "step";
      step: Step;
      [k: string]: unknown;
    }
  | {
      id: Id;
      op: "flush" | "exit";
      [k: string]: unknown;
    }
  | {
      op: "go";
      id?: never;
      [k: string]: unknown;
    };
export type Id = number | string;
export type Step = {
  [k: string]: unknown;
} & {
  step:
    | "start"
    | "prompt"
    | "sessionless_prompt"
    | "tool"
    | "compact"
    | "pre_compaction"
    | "compaction_complete"
    | "clear"
    | "fork"
    | "reopen"
    | "restart_host"
    | "close"
    | "wait"
    | "resume"
    | "end";
  session: string;
  agent?: string | null;
  project?: string;
  /**
   * The session in which a sub-agent was called.
   */
  parent?: string;
  /**
   * What the harness calls that sub-agent.
   */
  subagent?: string;
  /**
   * How much time passes in a wait.
   */
  seconds?: number;
  key?: string;
  text?: string;
  reply?: string;
  /**
   * The channel through which the user writes.
   */
  channel?: string;
  /**
   * Ids of memories, and how much each was of use.
   */
  feedback?: {
    [k: string]: number;
  };
  summary?: string;
  tool?: string;
  arguments?: {
    [k: string]: unknown;
  };
  more?: boolean;
  /**
   * The user stops the turn before the model is asked.
   */
  stopped?: boolean;
  /**
   * The restarted harness gives the session another id.
   */
  anew?: boolean;
  [k: string]: unknown;
};
export type Answer =
  | {
      id: Id;
      ok: true;
      ms: number;
      result: Result;
      [k: string]: unknown;
    }
  | {
      id: number | string | null;
      ok: false;
      error: {
        type: string;
        message: string;
        [k: string]: unknown;
      };
      [k: string]: unknown;
    };
/**
 * What the connector gave for the model, by the source that a face knows.
 */
export type Given = {
  source: string;
  text: string;
  form?: string;
  [k: string]: unknown;
}[];

export interface Result {
  protocol?: "signet-driver/1";
  key?: string | null;
  injected?: string | string[] | boolean | null;
  content?: {
    [k: string]: unknown;
  } | null;
  skipped?: string;
  /**
   * For hello: handover where the program tells what it hands to the connector.
   */
  tells?: string[];
  /**
   * For hello: whether the harness waits for the hook before a compaction.
   */
  awaits_compaction?: boolean;
  /**
   * What the connector printed on standard error, or gave to the harness's logger.
   */
  printed?: string;
  /**
   * Why the connector hears nothing, or not all, of its harness.
   */
  unheard?: string[];
  remarks?: string[];
  /**
   * Where in the connector's code the requests of the step were sent, in their order.
   */
  sent?: {
    method: string;
    path: string;
    /**
     * Places as FILE:LINE or FILE:LINE:COLUMN, the innermost first.
     */
    at: string[];
    [k: string]: unknown;
  }[];
  /**
   * false where the model's turn did not take place.
   */
  turn?: boolean;
  /**
   * How each handler or method fared; status is an HTTP status.
   */
  calls?: Handler[];
  /**
   * How each command fared; status is its exit status.
   */
  hooks?: Handler[];
  [k: string]: unknown;
}
export interface Handler {
  /**
   * The handler's name; an entry without one does not come from a handler.
   */
  event?: string;
  ms?: number;
  /**
   * null: there was none.
   */
  status?: number | null;
  /**
   * By how much the machine made a timer of the driver late meanwhile, or kept the connector from the processor.
   */
  late_ms?: number;
  /**
   * true where the harness went on without it.
   */
  timed_out?: boolean;
  /**
   * The error that it threw.
   */
  thrown?: string | null;
  /**
   * true where the user's turn was lost because of it, false where the harness went on with it.
   */
  lost?: boolean;
  /**
   * true where the harness gave up the user's turn because of it.
   */
  blocked?: boolean;
  stdout?: string;
  stderr?: string;
  [k: string]: unknown;
}
export interface Event {
  event: "model" | "handover";
  session: string;
  /**
   * handover of a start: the path that the connector runs in, or is told.
   */
  folder?: string;
  /**
   * handover of a tool: what the connector's tool is given.
   */
  arguments?: {
    [k: string]: unknown;
  };
  given?: Given;
  /**
   * model: the requests before it, such as for a title.
   */
  beside?: {
    for: string;
    given?: Given;
    [k: string]: unknown;
  }[];
  /**
   * model: the user's words where the connector changed them.
   */
  said?: string;
  id?: never;
  [k: string]: unknown;
}
