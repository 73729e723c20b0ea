import type { Result, Step } from "../types/driver.js";

export type { Result, Step };

type Maybe<T> = T | void | Promise<T | void>;
/** What was injected as a text, or a result of the protocol. */
type Said = string | Result;

/** A function for each step that the connector has a counterpart for. A step without one is skipped, and said so. */
export interface Handlers<Session> {
  /** Load the connector; nothing may reach the daemon yet. What is thrown is a finding on the connector (SIG-LOAD-001). */
  load?(): Maybe<Result>;
  /** A new session. What is returned is given to the other functions; its `key` is the native id, if it has one. */
  start(step: Step): Maybe<Session>;
  resume?(step: Step, session?: Session): Maybe<Session>;
  /** A user turn, up to where the model would be called: what the hook injected. */
  prompt?(step: Step, session: Session): Maybe<Said>;
  sessionless_prompt?(step: Step): Maybe<Said>;
  /** The model has answered with `step.reply`. */
  answered?(step: Step, session: Session): Maybe<void>;
  tool?(step: Step, session: Session): Maybe<Said>;
  /** The members that the schema of each tool offers, such as `{memory_store: ["content", "tags"]}`; others are left out. */
  tools?: { [tool: string]: readonly string[] };
  /** The path in which the connector runs in the session that begins, or that it is told. */
  folder?(step: Step): Maybe<string>;
  /** Without it, a compaction is played by its two halves, if both have a function. */
  compact?(step: Step, session: Session): Maybe<Said>;
  pre_compaction?(step: Step, session: Session): Maybe<Said>;
  compaction_complete?(step: Step, session: Session): Maybe<Said>;
  clear?(step: Step, session: Session): Maybe<Said>;
  end?(step: Step, session: Session): Maybe<Said>;
  /** What the connector does in the background has ended. */
  flush?(): Maybe<void>;
  /** The harness quits. */
  exit?(): Maybe<void>;
}

/** Answer the kit on standard input and output until it leaves; the process ends then. */
export function createDriver<Session>(
  handlers: Handlers<Session>,
  streams?: { input?: NodeJS.ReadableStream; output?: NodeJS.WritableStream },
): Promise<void>;
