// Made from schemas/scenario/signet-scenario.schema.json by `npm run types`; not to be changed by hand.

/**
 * A scenario in a file. Other members, such as the seed of a generated session, are ignored.
 */
export interface Scenario {
  /**
   * up to 100 letters, digits and -
   */
  name: string;
  /**
   * a text: what the scenario shows
   */
  title?: string;
  /**
   * an object such as {"SIGNET_BYPASS": "1"}: variables that are added to the connector's environment
   */
  env?: {
    [k: string]: string;
  };
  /**
   * a text such as SIGNET_NO_HOOKS: the variable in env by which the user switches hooks off
   */
  bypass?: string;
  /**
   * a list such as ["secrets-exec"]: operations that a connector must declare, or it does not perform the scenario
   */
  needs?: string[];
  /**
   * a list such as ["memory"]: tools of the harness itself that the model calls; a harness without them does not perform the scenario
   */
  own_tools?: string[];
  /**
   * a list of steps such as [{"step": "start", "session": "s1"}]
   *
   * @minItems 1
   */
  steps: [
    (
      | StartStep
      | PromptStep
      | SessionlessPromptStep
      | ToolStep
      | CompactStep
      | PreCompactionStep
      | CompactionCompleteStep
      | ResumeStep
      | ClearStep
      | EndStep
      | ForkStep
      | ReopenStep
      | RestartHostStep
      | CloseStep
      | WaitStep
      | SwitchFaultOn
      | SwitchFaultsOff
      | RestartDaemon
    ),
    ...(
      | StartStep
      | PromptStep
      | SessionlessPromptStep
      | ToolStep
      | CompactStep
      | PreCompactionStep
      | CompactionCompleteStep
      | ResumeStep
      | ClearStep
      | EndStep
      | ForkStep
      | ReopenStep
      | RestartHostStep
      | CloseStep
      | WaitStep
      | SwitchFaultOn
      | SwitchFaultsOff
      | RestartDaemon
    )[]
  ];
  [k: string]: unknown;
}
/**
 * The user opens a session, or an agent opens one for its sub-agent.
 */
export interface StartStep {
  step: "start";
  /**
   * a number among the target's agents, or an agent id
   */
  agent?: number | string;
  /**
   * a text: the folder that the user works in
   */
  project?: string;
  /**
   * a text: what the user says
   */
  text?: string;
  /**
   * a text: what the model answers
   */
  reply?: string;
  /**
   * a text: the tool that is called
   */
  tool?: string;
  /**
   * an object: the tool's arguments
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: the summary that replaces the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests that the fault applies to
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests the fault applies to
   */
  count?: number;
  /**
   * a text: the name by which later steps refer to the result
   */
  as?: string;
  /**
   * a name within the scenario such as "s1"
   */
  session: string;
  /**
   * a session name: the session whose sub-agent works in this one
   */
  parent?: string;
  /**
   * a text: the harness's own id of the sub-agent; not an agent of Signet
   */
  subagent?: string;
  [k: string]: unknown;
}
/**
 * The user says something.
 */
export interface PromptStep {
  step: "prompt";
  /**
   * a number among the target's agents, or an agent id
   */
  agent?: number | string;
  /**
   * a text: the folder that the user works in
   */
  project?: string;
  /**
   * a text: what the user says
   */
  text: string;
  /**
   * a text: what the model answers
   */
  reply?: string;
  /**
   * a text: the tool that is called
   */
  tool?: string;
  /**
   * an object: the tool's arguments
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: the summary that replaces the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests that the fault applies to
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests the fault applies to
   */
  count?: number;
  /**
   * a text: the name by which later steps refer to the result
   */
  as?: string;
  /**
   * a name within the scenario such as "s1"
   */
  session: string;
  /**
   * a whole number: how often the user says the text, each time with its number before it
   */
  repeat?: number;
  /**
   * true: the user says it only if the fault of the session's start has not met a request of the connector yet
   */
  for_late_start?: boolean;
  /**
   * true: the user stops the turn after the connector has heard of it and before the model is asked; drivers that do not list stopped_prompt among their steps in the answer to hello skip it
   */
  stopped?: boolean;
  /**
   * a list such as ["image"]: what the user attaches to the text, which may be empty then; drivers that do not list attached_prompt among their steps in the answer to hello skip it
   */
  attached?: ("file" | "image")[];
  /**
   * an object: memory id to how useful the memory was, from -1 to 1
   */
  feedback?: {
    [k: string]: number;
  };
  [k: string]: unknown;
}
/**
 * A prompt outside any session of the harness: from a hook, a timer or a command line. `session` names only this turn. Drivers that do not list the step in their answer to hello skip it.
 */
export interface SessionlessPromptStep {
  step: "sessionless_prompt";
  /**
   * a number among the target's agents, or an agent id
   */
  agent?: number | string;
  /**
   * a text: the folder that the user works in
   */
  project?: string;
  /**
   * a text: what the user says
   */
  text: string;
  /**
   * a text: what the model answers
   */
  reply?: string;
  /**
   * a text: the tool that is called
   */
  tool?: string;
  /**
   * an object: the tool's arguments
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: the summary that replaces the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests that the fault applies to
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests the fault applies to
   */
  count?: number;
  /**
   * a text: the name by which later steps refer to the result
   */
  as?: string;
  /**
   * a name within the scenario such as "s1"
   */
  session: string;
  [k: string]: unknown;
}
/**
 * The model calls a tool.
 */
export interface ToolStep {
  step: "tool";
  /**
   * a number among the target's agents, or an agent id
   */
  agent?: number | string;
  /**
   * a text: the folder that the user works in
   */
  project?: string;
  /**
   * a text: what the user says
   */
  text?: string;
  /**
   * a text: what the model answers
   */
  reply?: string;
  /**
   * a text: the tool that is called
   */
  tool: string;
  /**
   * an object: the tool's arguments
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: the summary that replaces the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests that the fault applies to
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests the fault applies to
   */
  count?: number;
  /**
   * a text: the name by which later steps refer to the result
   */
  as?: string;
  /**
   * a name within the scenario such as "s1"
   */
  session: string;
  [k: string]: unknown;
}
/**
 * The harness compacts the conversation: pre_compaction and compaction_complete in one step.
 */
export interface CompactStep {
  step: "compact";
  /**
   * a number among the target's agents, or an agent id
   */
  agent?: number | string;
  /**
   * a text: the folder that the user works in
   */
  project?: string;
  /**
   * a text: what the user says
   */
  text?: string;
  /**
   * a text: what the model answers
   */
  reply?: string;
  /**
   * a text: the tool that is called
   */
  tool?: string;
  /**
   * an object: the tool's arguments
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: the summary that replaces the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests that the fault applies to
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests the fault applies to
   */
  count?: number;
  /**
   * a text: the name by which later steps refer to the result
   */
  as?: string;
  /**
   * a name within the scenario such as "s1"
   */
  session: string;
  /**
   * true: the harness compacts because its context is full, not because the user asks for it
   */
  by_itself?: boolean;
  [k: string]: unknown;
}
/**
 * The harness is about to compact the conversation.
 */
export interface PreCompactionStep {
  step: "pre_compaction";
  /**
   * a number among the target's agents, or an agent id
   */
  agent?: number | string;
  /**
   * a text: the folder that the user works in
   */
  project?: string;
  /**
   * a text: what the user says
   */
  text?: string;
  /**
   * a text: what the model answers
   */
  reply?: string;
  /**
   * a text: the tool that is called
   */
  tool?: string;
  /**
   * an object: the tool's arguments
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: the summary that replaces the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests that the fault applies to
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests the fault applies to
   */
  count?: number;
  /**
   * a text: the name by which later steps refer to the result
   */
  as?: string;
  /**
   * a name within the scenario such as "s1"
   */
  session: string;
  [k: string]: unknown;
}
/**
 * The conversation has been compacted.
 */
export interface CompactionCompleteStep {
  step: "compaction_complete";
  /**
   * a number among the target's agents, or an agent id
   */
  agent?: number | string;
  /**
   * a text: the folder that the user works in
   */
  project?: string;
  /**
   * a text: what the user says
   */
  text?: string;
  /**
   * a text: what the model answers
   */
  reply?: string;
  /**
   * a text: the tool that is called
   */
  tool?: string;
  /**
   * an object: the tool's arguments
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: the summary that replaces the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests that the fault applies to
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests the fault applies to
   */
  count?: number;
  /**
   * a text: the name by which later steps refer to the result
   */
  as?: string;
  /**
   * a name within the scenario such as "s1"
   */
  session: string;
  [k: string]: unknown;
}
/**
 * The user opens a session again.
 */
export interface ResumeStep {
  step: "resume";
  /**
   * a number among the target's agents, or an agent id
   */
  agent?: number | string;
  /**
   * a text: the folder that the user works in
   */
  project?: string;
  /**
   * a text: what the user says
   */
  text?: string;
  /**
   * a text: what the model answers
   */
  reply?: string;
  /**
   * a text: the tool that is called
   */
  tool?: string;
  /**
   * an object: the tool's arguments
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: the summary that replaces the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests that the fault applies to
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests the fault applies to
   */
  count?: number;
  /**
   * a text: the name by which later steps refer to the result
   */
  as?: string;
  /**
   * a name within the scenario such as "s1"
   */
  session: string;
  [k: string]: unknown;
}
/**
 * The user clears the conversation, which begins another session.
 */
export interface ClearStep {
  step: "clear";
  /**
   * a number among the target's agents, or an agent id
   */
  agent?: number | string;
  /**
   * a text: the folder that the user works in
   */
  project?: string;
  /**
   * a text: what the user says
   */
  text?: string;
  /**
   * a text: what the model answers
   */
  reply?: string;
  /**
   * a text: the tool that is called
   */
  tool?: string;
  /**
   * an object: the tool's arguments
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: the summary that replaces the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests that the fault applies to
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests the fault applies to
   */
  count?: number;
  /**
   * a text: the name by which later steps refer to the result
   */
  as?: string;
  /**
   * a name within the scenario such as "s1"
   */
  session: string;
  [k: string]: unknown;
}
/**
 * The user closes the session.
 */
export interface EndStep {
  step: "end";
  /**
   * a number among the target's agents, or an agent id
   */
  agent?: number | string;
  /**
   * a text: the folder that the user works in
   */
  project?: string;
  /**
   * a text: what the user says
   */
  text?: string;
  /**
   * a text: what the model answers
   */
  reply?: string;
  /**
   * a text: the tool that is called
   */
  tool?: string;
  /**
   * an object: the tool's arguments
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: the summary that replaces the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests that the fault applies to
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests the fault applies to
   */
  count?: number;
  /**
   * a text: the name by which later steps refer to the result
   */
  as?: string;
  /**
   * a name within the scenario such as "s1"
   */
  session: string;
  [k: string]: unknown;
}
/**
 * The user continues in a copy of the conversation, which is another session of the harness. Drivers that do not list the step in their answer to hello skip it.
 */
export interface ForkStep {
  step: "fork";
  /**
   * a number among the target's agents, or an agent id
   */
  agent?: number | string;
  /**
   * a text: the folder that the user works in
   */
  project?: string;
  /**
   * a text: what the user says
   */
  text?: string;
  /**
   * a text: what the model answers
   */
  reply?: string;
  /**
   * a text: the tool that is called
   */
  tool?: string;
  /**
   * an object: the tool's arguments
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: the summary that replaces the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests that the fault applies to
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests the fault applies to
   */
  count?: number;
  /**
   * a text: the name by which later steps refer to the result
   */
  as?: string;
  /**
   * a name within the scenario such as "s1"
   */
  session: string;
  [k: string]: unknown;
}
/**
 * The user returns, in the running program, to the session that was left by a clear or a fork. Drivers that do not list the step in their answer to hello skip it.
 */
export interface ReopenStep {
  step: "reopen";
  /**
   * a number among the target's agents, or an agent id
   */
  agent?: number | string;
  /**
   * a text: the folder that the user works in
   */
  project?: string;
  /**
   * a text: what the user says
   */
  text?: string;
  /**
   * a text: what the model answers
   */
  reply?: string;
  /**
   * a text: the tool that is called
   */
  tool?: string;
  /**
   * an object: the tool's arguments
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: the summary that replaces the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests that the fault applies to
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests the fault applies to
   */
  count?: number;
  /**
   * a text: the name by which later steps refer to the result
   */
  as?: string;
  /**
   * a name within the scenario such as "s1"
   */
  session: string;
  [k: string]: unknown;
}
/**
 * The harness is killed, so it reports nothing, and is started again; the user continues the session. Whether the session keeps its id depends on the harness. Drivers that do not list the step in their answer to hello skip it.
 */
export interface RestartHostStep {
  step: "restart_host";
  /**
   * a number among the target's agents, or an agent id
   */
  agent?: number | string;
  /**
   * a text: the folder that the user works in
   */
  project?: string;
  /**
   * a text: what the user says
   */
  text?: string;
  /**
   * a text: what the model answers
   */
  reply?: string;
  /**
   * a text: the tool that is called
   */
  tool?: string;
  /**
   * an object: the tool's arguments
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: the summary that replaces the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests that the fault applies to
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests the fault applies to
   */
  count?: number;
  /**
   * a text: the name by which later steps refer to the result
   */
  as?: string;
  /**
   * a name within the scenario such as "s1"
   */
  session: string;
  /**
   * true: the harness gives the session another id; one that the kit plays knows that itself
   */
  anew?: boolean;
  [k: string]: unknown;
}
/**
 * The user closes the window of a session, and the harness keeps running, with or without other sessions. A driver that does not list the step in its answer to hello gets an end step instead.
 */
export interface CloseStep {
  step: "close";
  /**
   * a number among the target's agents, or an agent id
   */
  agent?: number | string;
  /**
   * a text: the folder that the user works in
   */
  project?: string;
  /**
   * a text: what the user says
   */
  text?: string;
  /**
   * a text: what the model answers
   */
  reply?: string;
  /**
   * a text: the tool that is called
   */
  tool?: string;
  /**
   * an object: the tool's arguments
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: the summary that replaces the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests that the fault applies to
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests the fault applies to
   */
  count?: number;
  /**
   * a text: the name by which later steps refer to the result
   */
  as?: string;
  /**
   * a name within the scenario such as "s1"
   */
  session: string;
  [k: string]: unknown;
}
/**
 * Time passes in the harness: its clock is put forward, and timers that are due fire. Drivers that do not list the step in their answer to hello skip it.
 */
export interface WaitStep {
  step: "wait";
  /**
   * a number among the target's agents, or an agent id
   */
  agent?: number | string;
  /**
   * a text: the folder that the user works in
   */
  project?: string;
  /**
   * a text: what the user says
   */
  text?: string;
  /**
   * a text: what the model answers
   */
  reply?: string;
  /**
   * a text: the tool that is called
   */
  tool?: string;
  /**
   * an object: the tool's arguments
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: the summary that replaces the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests that the fault applies to
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests the fault applies to
   */
  count?: number;
  /**
   * a text: the name by which later steps refer to the result
   */
  as?: string;
  /**
   * a name within the scenario such as "s1"
   */
  session: string;
  /**
   * a number of seconds above 0: how much time passes
   */
  seconds: number;
  [k: string]: unknown;
}
/**
 * The recorder switches a fault on.
 */
export interface SwitchFaultOn {
  step: "fault";
  /**
   * a number among the target's agents, or an agent id
   */
  agent?: number | string;
  /**
   * a text: the folder that the user works in
   */
  project?: string;
  /**
   * a text: what the user says
   */
  text?: string;
  /**
   * a text: what the model answers
   */
  reply?: string;
  /**
   * a text: the tool that is called
   */
  tool?: string;
  /**
   * an object: the tool's arguments
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: the summary that replaces the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests that the fault applies to
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests the fault applies to
   */
  count?: number;
  /**
   * a text: the name by which later steps refer to the result
   */
  as?: string;
}
/**
 * The recorder switches every fault off.
 */
export interface SwitchFaultsOff {
  step: "fault_off";
  /**
   * a number among the target's agents, or an agent id
   */
  agent?: number | string;
  /**
   * a text: the folder that the user works in
   */
  project?: string;
  /**
   * a text: what the user says
   */
  text?: string;
  /**
   * a text: what the model answers
   */
  reply?: string;
  /**
   * a text: the tool that is called
   */
  tool?: string;
  /**
   * an object: the tool's arguments
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: the summary that replaces the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests that the fault applies to
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests the fault applies to
   */
  count?: number;
  /**
   * a text: the name by which later steps refer to the result
   */
  as?: string;
}
/**
 * The kit ends the daemon and starts it again.
 */
export interface RestartDaemon {
  step: "restart_daemon";
  /**
   * a number among the target's agents, or an agent id
   */
  agent?: number | string;
  /**
   * a text: the folder that the user works in
   */
  project?: string;
  /**
   * a text: what the user says
   */
  text?: string;
  /**
   * a text: what the model answers
   */
  reply?: string;
  /**
   * a text: the tool that is called
   */
  tool?: string;
  /**
   * an object: the tool's arguments
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: the summary that replaces the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests that the fault applies to
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests the fault applies to
   */
  count?: number;
  /**
   * a text: the name by which later steps refer to the result
   */
  as?: string;
  /**
   * true: the daemon was away so long that it no longer knows any session, as after a night; a daemon other than the embedded one is only restarted
   */
  claims_expire?: boolean;
}
