import type { Result, Step } from "../types/driver.js";

export type { Result, Step };

type Maybe<T> = T | void | Promise<T | void>;
/** The injected text, or a result of the protocol. */
type Outcome = string | Result;

/** A function for each step with a counterpart in the connector. A step without one is reported as skipped. */
export interface Handlers<Session> {
  /** Load the connector, without a request to the daemon. An error is a finding on the connector (SIG-LOAD-001). */
  load?(): Maybe<Result>;
  /** Begin a session. The other functions get the returned value; its `key` is the native id, if it has one. */
  start(step: Step): Maybe<Session>;
  resume?(step: Step, session?: Session): Maybe<Session>;
  /** Begin a user's turn, up to the call of the model; return what the hook injected. */
  prompt?(step: Step, session: Session): Maybe<Outcome>;
  sessionless_prompt?(step: Step): Maybe<Outcome>;
  /** The model has answered with `step.reply`. */
  answered?(step: Step, session: Session): Maybe<void>;
  tool?(step: Step, session: Session): Maybe<Outcome>;
  /** The members of each tool's schema, such as `{memory_store: ["content", "tags"]}`; other arguments are left out. */
  tools?: { [tool: string]: readonly string[] };
  /** The folder in which the connector runs in the new session, or which it gets. */
  folder?(step: Step): Maybe<string>;
  /** If it is missing, a compaction is played by its two halves, if both have a function. */
  compact?(step: Step, session: Session): Maybe<Outcome>;
  pre_compaction?(step: Step, session: Session): Maybe<Outcome>;
  compaction_complete?(step: Step, session: Session): Maybe<Outcome>;
  clear?(step: Step, session: Session): Maybe<Outcome>;
  end?(step: Step, session: Session): Maybe<Outcome>;
  /** Wait until the connector's background work has ended. */
  flush?(): Maybe<void>;
  /** The harness quits. */
  exit?(): Maybe<void>;
}

/** Answer the kit on standard input and output until it sends `exit`; then end the process. */
export function createDriver<Session>(
  handlers: Handlers<Session>,
  streams?: { input?: NodeJS.ReadableStream; output?: NodeJS.WritableStream },
): Promise<void>;
