// Made from schemas/report/signet-report-1.schema.json by `npm run types`; not to be changed by hand.

/**
 * The verdict of one requirement, with its evidence.
 */
export type ReportVerdict = {
  [k: string]: unknown;
} & {
  verdict: Verdict;
  /**
   * A code that programs compare, such as conforming, breach, no-subject, gated, undecided, crashed.
   */
  reason: string;
  message?: string;
  title?: string;
  level?: "MUST" | "SHOULD" | "MAY";
  /**
   * The command that shows the requirement's page; with a breach.
   */
  explain?: string;
  /**
   * How many subjects were looked at.
   */
  subjects?: number;
  /**
   * How many findings there are.
   */
  found?: number;
  /**
   * How many of them stand here.
   */
  listed?: number;
  findings: ReportFinding[];
  [k: string]: unknown;
};
/**
 * The outcome of one requirement over one trace, or over a whole run.
 */
export type Verdict = "PASS" | "FAIL" | "WARN" | "NOT-APPLICABLE" | "INCONCLUSIVE" | "ERROR";

/**
 * A run: the verdict of every requirement over every trace. Readers ignore members that are not named here.
 */
export interface Report {
  format: "signet-report/1";
  /**
   * Contract version, a file of versions.
   */
  contract: string;
  /**
   * Version of the program that judged.
   */
  kit: string;
  run?: ReportRun;
  /**
   * The harnesses that the kit played, by the marks of the traces.
   */
  played?: ReportPlayed[];
  traces: ReportTrace[];
  /**
   * The verdict of each requirement over all traces.
   */
  together?: {
    [k: string]: ReportVerdict;
  };
  /**
   * Breaches by cause: those of the connector, then those of the daemon and of the harness.
   */
  causes?: ReportCause[];
  /**
   * Exit status of the run.
   */
  exit: number;
  lacks?: ReportLacks;
  /**
   * Warnings, such as a torn last line or a file that was left out.
   */
  warnings?: string[];
  /**
   * Notes that change no verdict: what is off about the connector's installation, such as a timeout in a wrong unit, and what became of its handlers in the harness.
   */
  remarks?: string[];
  /**
   * Kind of step that the driver skipped, to the number of recordings in which it did.
   */
  skipped?: {
    [k: string]: number;
  };
  coverage?: ReportCoverage;
  newer?: ReportNewer;
  unreached?: ReportUnreached;
  generated?: ReportGenerated;
  time_spent?: ReportTimeSpent;
  /**
   * The run as it went.
   */
  events?: {
    [k: string]: unknown;
  }[];
  [k: string]: unknown;
}
/**
 * The facts that distinguish the run from others.
 */
export interface ReportRun {
  /**
   * When its first recording began.
   */
  created?: string;
  /**
   * The commit that was checked out where the report was made, or the one that CI named.
   */
  commit?: string;
  branch?: string;
  /**
   * That of the generated sessions.
   */
  seed?: number;
  /**
   * The connector's own release.
   */
  connector?: string;
  [k: string]: unknown;
}
/**
 * A harness that the kit played for the connector.
 */
export interface ReportPlayed {
  host: string;
  /**
   * The release of it that was played.
   */
  release: string;
  /**
   * The later releases that the kit knew when it ran.
   */
  newer?: string[];
  /**
   * Whether it is the program that people run, and was launched.
   */
  real?: boolean;
  [k: string]: unknown;
}
/**
 * One recording.
 */
export interface ReportTrace {
  file: string;
  /**
   * The connector, as the trace's header names it.
   */
  target?: string;
  /**
   * The scenario that was performed; that of a generated session is a requirement.
   */
  scenario?: string;
  /**
   * Operation to how often it was called.
   */
  operations?: {
    [k: string]: number;
  };
  declared: ReportDeclared;
  verdicts: {
    [k: string]: ReportVerdict;
  };
  /**
   * The daemon's side, judged apart: it changes no verdict of the connector and no exit status.
   */
  daemon?: {
    [k: string]: ReportVerdict;
  };
  model?: ReportModel;
  /**
   * What of its traffic could not be judged.
   */
  gaps?: ReportGap[];
  /**
   * As of the whole report.
   */
  remarks?: string[];
  /**
   * Warnings, such as a torn last line or a file that was left out.
   */
  warnings?: string[];
  [k: string]: unknown;
}
/**
 * As in the trace's header, or as given on the command line.
 */
export interface ReportDeclared {
  harness?: string;
  capabilities?: string[];
  agents?: string[];
  bounds_s?: {
    [k: string]: number;
  };
  token?: boolean;
  /**
   * Secrets that the recorder was told of: the mark in the trace to the name.
   */
  canaries?: {
    [k: string]: string;
  };
  [k: string]: unknown;
}
/**
 * One piece of evidence.
 */
export interface ReportFinding {
  /**
   * Numbers (seq) in the trace; the breaching one first.
   */
  exchanges: number[];
  /**
   * Numbers (seq) in the recording of the harness's model; the breaching one first.
   */
  model?: number[];
  side: "connector" | "daemon" | "harness";
  /**
   * JSON Pointer into the line of the first exchange; empty = all of it.
   */
  pointer: string;
  expected: string;
  /**
   * The value that was found; null also where there was none.
   */
  received: {
    [k: string]: unknown;
  };
  message: string;
  verdict?: Verdict;
  /**
   * In `together`: the recording; absent where only all of them show it.
   */
  file?: string;
  /**
   * The kind of breach: a code that is the same in every run, whatever the wording.
   */
  kind?: string;
  /**
   * The operation of the first exchange, if it is of one.
   */
  operation?: string;
  /**
   * The members of a list that the finding is about: each is a breach by itself.
   */
  elements?: string[];
  /**
   * Equal for repeats of one defect.
   */
  fold?: string;
  [k: string]: unknown;
}
/**
 * The requests to the harness's model, where they were recorded.
 */
export interface ReportModel {
  /**
   * The recording of the model.
   */
  file: string;
  /**
   * true where no model was asked: a host that the kit plays wrote its requests.
   */
  played?: boolean;
  verdicts: {
    [k: string]: ReportVerdict;
  };
  [k: string]: unknown;
}
/**
 * Traffic that could not be judged, for a reason of the recorder or of a capture.
 */
export interface ReportGap {
  /**
   * not carried, not decoded, not captured, or not kept whole.
   */
  lack: string;
  /**
   * Method and operation; outside the contract the path.
   */
  route: string;
  times: number;
  [k: string]: unknown;
}
/**
 * Breaches with one cause, over all traces and requirements.
 */
export interface ReportCause {
  /**
   * The leading requirement, by which the problems are described.
   */
  requirement: string;
  /**
   * The mistake, where one breaks several requirements, each in its own way.
   */
  says?: string;
  verdict: Verdict;
  /**
   * Whether each of its failures is known.
   */
  known?: boolean;
  /**
   * Other requirements that it breaches.
   */
  also?: ReportAlso[];
  /**
   * How many traces show it; 0 where only all of them together do.
   */
  traces: number;
  /**
   * How many traces there are.
   */
  of: number;
  /**
   * How many sessions show it.
   */
  sessions: number;
  /**
   * Operation to how many calls of it show it.
   */
  calls?: {
    [k: string]: number;
  };
  /**
   * The worst first.
   */
  problems: ReportProblem[];
  [k: string]: unknown;
}
/**
 * Another requirement that a cause breaches.
 */
export interface ReportAlso {
  requirement: string;
  verdict: Verdict;
  [k: string]: unknown;
}
/**
 * One thing that is wrong, with its smallest example.
 */
export interface ReportProblem {
  what: string;
  file?: string;
  /**
   * Its number (seq) in that file.
   */
  exchange?: number;
  /**
   * The line of that file.
   */
  line?: number;
  pointer?: string;
  expected?: string;
  /**
   * As a line of text.
   */
  received?: string;
  /**
   * The places that sent the exchange, the innermost first; where the driver can tell.
   */
  sources?: ReportSource[];
  /**
   * How many findings tell of it.
   */
  times: number;
  [k: string]: unknown;
}
/**
 * A line of the connector's code.
 */
export interface ReportSource {
  /**
   * Relative to the folder in which the run was started, if it is below that.
   */
  file: string;
  line: number;
  [k: string]: unknown;
}
/**
 * Parts that were not judged; absent in reports of kits that did not say so.
 */
export interface ReportLacks {
  /**
   * Recordings that could not be read.
   */
  unread?: string[];
  /**
   * Scenarios that broke off or were given up.
   */
  scenarios?: string[];
  /**
   * Whether the run ended early, so that nothing says which scenarios it lacks.
   */
  others?: boolean;
  [k: string]: unknown;
}
/**
 * How much of the contract the traces exercise: operations, fields, answers, requirements; when it was asked for.
 */
export interface ReportCoverage {
  percent: number;
  parts: {
    [k: string]: CoveragePart;
  };
  [k: string]: unknown;
}
/**
 * One part of the contract: operations, fields, answers or requirements.
 */
export interface CoveragePart {
  exercised: string[];
  missed: string[];
  [k: string]: unknown;
}
/**
 * Further breaches of the next contract, where the connector's release lies between two; they change no exit status.
 */
export interface ReportNewer {
  contract: string;
  /**
   * How many traces were judged by it.
   */
  of: number;
  breaches: {
    [k: string]: LaterBreach;
  };
  [k: string]: unknown;
}
/**
 * A requirement that the next contract would find breached.
 */
export interface LaterBreach {
  verdict: Verdict;
  /**
   * How many traces breach it.
   */
  traces: number;
  message: string;
  /**
   * The first of them.
   */
  file?: string;
  [k: string]: unknown;
}
/**
 * Tools and fields that the model cannot reach through the connector, if its tools are known; information.
 */
export interface ReportUnreached {
  /**
   * Tools that are not offered, and whose operations were not called.
   */
  tools: string[];
  /**
   * Offered tool to the fields that it cannot pass on.
   */
  fields: {
    [k: string]: string[];
  };
  /**
   * Offered tools whose schema names nothing that they need.
   */
  unfillable: string[];
  later?: ReportUnreachedLater;
  [k: string]: unknown;
}
/**
 * The tools and fields that only the next contract has, where the connector's release lies between two.
 */
export interface ReportUnreachedLater {
  /**
   * The next contract.
   */
  contract: string;
  /**
   * Tools that are not offered, and whose operations were not called.
   */
  tools: string[];
  /**
   * Offered tool to the fields that it cannot pass on.
   */
  fields: {
    [k: string]: string[];
  };
  [k: string]: unknown;
}
/**
 * The generated sessions, where there were any.
 */
export interface ReportGenerated {
  seed: number;
  /**
   * How many there were.
   */
  performed: number;
  /**
   * How many of them held each outage that users really have, by its name.
   */
  outages?: {
    [k: string]: number;
  };
  /**
   * How many steps of each kind were skipped: connector or harness has no counterpart.
   */
  skipped?: {
    [k: string]: number;
  };
  /**
   * What of them could not be judged, how often.
   */
  gaps?: {
    [k: string]: number;
  };
  /**
   * Outages that no session could have, why, and what to do about it.
   */
  lost?: string[];
  [k: string]: unknown;
}
/**
 * Where the time of the run went; when it was asked for.
 */
export interface ReportTimeSpent {
  /**
   * From the start of the process on.
   */
  wall_s: number;
  /**
   * Of the clock on the wall, by phase, one after the other.
   */
  phases: {
    [k: string]: number;
  };
  workers: number;
  /**
   * Activities of the workers while driving.
   */
  parts: ReportPartTime[];
  /**
   * CPU time by program, with that of its children.
   */
  cpu_s: {
    [k: string]: number;
  };
  [k: string]: unknown;
}
/**
 * Time that the workers of a run spent on one activity.
 */
export interface ReportPartTime {
  part: string;
  /**
   * Its group, such as process starts or waiting.
   */
  of: string;
  /**
   * Seconds, summed over the workers.
   */
  s: number;
  times: number;
  [k: string]: unknown;
}
