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
   * such as {"SIGNET_BYPASS": "1"}: what is added to the environment of the connector
   */
  env?: {
    [k: string]: string;
  };
  /**
   * a text such as SIGNET_NO_HOOKS: the variable of env with which the user switches hooks off
   */
  bypass?: string;
  /**
   * such as ["secrets-exec"]: operations that a connector must declare for it to make sense
   */
  needs?: string[];
  /**
   * such as ["memory"]: tools of the harness itself that the model calls; a harness without them does not perform the scenario
   */
  own_tools?: string[];
  /**
   * such as [{"step": "start", "session": "s1"}]
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
   * an object: what the tool is given
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: what is left of the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests it meets
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests it meets
   */
  count?: number;
  /**
   * a text: the name under which later steps know the result
   */
  as?: string;
  /**
   * a name within the scenario such as "s1"
   */
  session: string;
  /**
   * a session: a sub-agent of it works in this one
   */
  parent?: string;
  /**
   * a text: what the harness calls the sub-agent; not an agent of Signet
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
   * an object: what the tool is given
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: what is left of the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests it meets
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests it meets
   */
  count?: number;
  /**
   * a text: the name under which later steps know the result
   */
  as?: string;
  /**
   * a name within the scenario such as "s1"
   */
  session: string;
  /**
   * a whole number: how often the text is said, each time with its number before it
   */
  repeat?: number;
  /**
   * true: said only where a fault of the session's start has met no request of the connector
   */
  for_late_start?: boolean;
  /**
   * true: the user stops the turn when the connector has heard of it, before the model is asked; drivers that do not list stopped_prompt among their steps in the answer to hello skip it
   */
  stopped?: boolean;
  /**
   * an object: what memories were worth, by their ids, from -1 to 1
   */
  feedback?: {
    [k: string]: number;
  };
  [k: string]: unknown;
}
/**
 * A prompt without a session of the harness: from a hook, a timer, a command line. `session` names the turn alone. Drivers that do not list the step in their answer to hello skip it.
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
   * an object: what the tool is given
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: what is left of the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests it meets
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests it meets
   */
  count?: number;
  /**
   * a text: the name under which later steps know the result
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
   * an object: what the tool is given
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: what is left of the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests it meets
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests it meets
   */
  count?: number;
  /**
   * a text: the name under which later steps know the result
   */
  as?: string;
  /**
   * a name within the scenario such as "s1"
   */
  session: string;
  [k: string]: unknown;
}
/**
 * The harness compacts the conversation: both halves at once.
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
   * an object: what the tool is given
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: what is left of the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests it meets
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests it meets
   */
  count?: number;
  /**
   * a text: the name under which later steps know the result
   */
  as?: string;
  /**
   * a name within the scenario such as "s1"
   */
  session: string;
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
   * an object: what the tool is given
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: what is left of the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests it meets
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests it meets
   */
  count?: number;
  /**
   * a text: the name under which later steps know the result
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
   * an object: what the tool is given
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: what is left of the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests it meets
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests it meets
   */
  count?: number;
  /**
   * a text: the name under which later steps know the result
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
   * an object: what the tool is given
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: what is left of the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests it meets
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests it meets
   */
  count?: number;
  /**
   * a text: the name under which later steps know the result
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
   * an object: what the tool is given
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: what is left of the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests it meets
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests it meets
   */
  count?: number;
  /**
   * a text: the name under which later steps know the result
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
   * an object: what the tool is given
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: what is left of the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests it meets
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests it meets
   */
  count?: number;
  /**
   * a text: the name under which later steps know the result
   */
  as?: string;
  /**
   * a name within the scenario such as "s1"
   */
  session: string;
  [k: string]: unknown;
}
/**
 * The user goes on in a copy of the conversation, which is another session of the harness. Drivers that do not list the step in their answer to hello skip it.
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
   * an object: what the tool is given
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: what is left of the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests it meets
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests it meets
   */
  count?: number;
  /**
   * a text: the name under which later steps know the result
   */
  as?: string;
  /**
   * a name within the scenario such as "s1"
   */
  session: string;
  [k: string]: unknown;
}
/**
 * The user goes back, in the running program, to the session that a clear or a fork has left. Drivers that do not list the step in their answer to hello skip it.
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
   * an object: what the tool is given
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: what is left of the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests it meets
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests it meets
   */
  count?: number;
  /**
   * a text: the name under which later steps know the result
   */
  as?: string;
  /**
   * a name within the scenario such as "s1"
   */
  session: string;
  [k: string]: unknown;
}
/**
 * The harness is killed, so it tells nothing, and is started again; the user goes on in the session. Whether the session keeps its id there is the harness's. Drivers that do not list the step in their answer to hello skip it.
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
   * an object: what the tool is given
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: what is left of the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests it meets
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests it meets
   */
  count?: number;
  /**
   * a text: the name under which later steps know the result
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
 * The user closes the window of a session, and the harness lives on, with other sessions or none. A driver that does not list the step in its answer to hello is given an end in place of it.
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
   * an object: what the tool is given
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: what is left of the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests it meets
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests it meets
   */
  count?: number;
  /**
   * a text: the name under which later steps know the result
   */
  as?: string;
  /**
   * a name within the scenario such as "s1"
   */
  session: string;
  [k: string]: unknown;
}
/**
 * Time passes in the harness: its clock is put forward, and what is due by then is done. Drivers that do not list the step in their answer to hello skip it.
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
   * an object: what the tool is given
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: what is left of the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests it meets
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests it meets
   */
  count?: number;
  /**
   * a text: the name under which later steps know the result
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
   * an object: what the tool is given
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: what is left of the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests it meets
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests it meets
   */
  count?: number;
  /**
   * a text: the name under which later steps know the result
   */
  as?: string;
  [k: string]: unknown;
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
   * an object: what the tool is given
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: what is left of the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests it meets
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests it meets
   */
  count?: number;
  /**
   * a text: the name under which later steps know the result
   */
  as?: string;
  [k: string]: unknown;
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
   * an object: what the tool is given
   */
  arguments?: {
    [k: string]: unknown;
  };
  /**
   * a text: what is left of the conversation
   */
  summary?: string;
  /**
   * an object such as {"kind": "reset"}
   */
  fault?: {
    [k: string]: unknown;
  };
  /**
   * an object such as {"path": "/api/hooks/*"}: the requests it meets
   */
  match?: {
    [k: string]: unknown;
  };
  /**
   * a whole number: how many requests it meets
   */
  count?: number;
  /**
   * a text: the name under which later steps know the result
   */
  as?: string;
  /**
   * true: it was away for so long that no session is known to it any more, as after a night; a daemon that is not the embedded one is restarted only
   */
  claims_expire?: boolean;
  [k: string]: unknown;
}
