// Made from schemas/driver/signet-driver-1.schema.json by `npm run types`; not to be changed by hand.

/**
 * A request of the kit on standard input, or an answer or event of the driver program on standard output: one JSON object per line. docs/driver-protocol.md explains each.
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
   * The session that called the sub-agent.
   */
  parent?: string;
  /**
   * The harness's own id of that sub-agent.
   */
  subagent?: string;
  /**
   * How many seconds pass in a wait.
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
   * What the user attaches to the text.
   */
  attached?: ("file" | "image")[];
  /**
   * Memory id to how useful the memory was, from -1 to 1.
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
  /**
   * The harness compacts unasked.
   */
  by_itself?: boolean;
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
        /**
         * of the kit's hosts: where in their own code it arose.
         */
        at?: string;
        [k: string]: unknown;
      };
      [k: string]: unknown;
    };
/**
 * Texts that the connector gave for the model, by the source as the face names it.
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
   * For hello: handover if the program reports what it hands to the connector.
   */
  tells?: string[];
  /**
   * For hello: whether the harness waits for the hook before a compaction.
   */
  awaits_compaction?: boolean;
  /**
   * Text that the connector printed on standard error, or gave to the harness's logger.
   */
  printed?: string;
  /**
   * Why the connector gets no events of its harness, or not all.
   */
  unheard?: string[];
  remarks?: string[];
  /**
   * Where in the connector's code the requests of the step were sent, in the order of the requests.
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
   * false if the model's turn did not take place.
   */
  turn?: boolean;
  /**
   * The outcome of each handler or method; status is an HTTP status.
   */
  calls?: Handler[];
  /**
   * The outcome of each command; status is its exit status.
   */
  hooks?: Handler[];
  [k: string]: unknown;
}
export interface Handler {
  /**
   * The handler's name; absent if the entry is not about a handler.
   */
  event?: string;
  ms?: number;
  /**
   * The status; null: there was none.
   */
  status?: number | null;
  /**
   * By how many milliseconds the machine delayed a timer of the driver in that time, or kept the connector from the processor.
   */
  late_ms?: number;
  /**
   * true if the harness continued without waiting for it.
   */
  timed_out?: boolean;
  /**
   * The error that it threw.
   */
  thrown?: string | null;
  /**
   * true if the user's turn was lost because of it, false if the harness continued the turn.
   */
  lost?: boolean;
  /**
   * true if the harness gave up the user's turn because of it.
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
   * handover of a start: the path in which the connector runs, or which it is given.
   */
  folder?: string;
  /**
   * handover of a tool: the arguments that the connector's tool gets.
   */
  arguments?: {
    [k: string]: unknown;
  };
  given?: Given;
  /**
   * model: the requests that the harness made before it, such as for a title.
   */
  beside?: {
    for: string;
    given?: Given;
    [k: string]: unknown;
  }[];
  /**
   * model: the user's words, if the connector changed them.
   */
  said?: string;
  id?: never;
  [k: string]: unknown;
}
