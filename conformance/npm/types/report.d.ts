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
   * The command that shows the requirement's page; present with a breach.
   */
  explain?: string;
  /**
   * How many subjects were looked at.
   */
  subjects?: number;
  /**
   * How many findings there are in all.
   */
  found?: number;
  /**
   * How many of the findings are listed here.
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
   * Version of the kit that judged.
   */
  kit: string;
  run?: ReportRun;
  /**
   * The harnesses that the kit played, according to the marks of the traces.
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
   * Notes that change no verdict: about the connector's installation, such as a timeout in a wrong unit, and about its handlers in the harness.
   */
  remarks?: string[];
  /**
   * Kind of step that the driver skipped, to the number of recordings in which it was skipped.
   */
  skipped?: {
    [k: string]: number;
  };
  coverage?: ReportCoverage;
  newer?: ReportNewer;
  unreached?: ReportUnreached;
  generated?: ReportGenerated;
  time_spent?: ReportTimeSpent;
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
   * The commit that was checked out in the folder of the run, or that CI named.
   */
  commit?: string;
  branch?: string;
  /**
   * The seed of the generated sessions.
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
   * The release of the harness that was played.
   */
  release: string;
  /**
   * The later releases of the harness that the kit knew at the time of the run.
   */
  newer?: string[];
  /**
   * Whether the real program was launched, not played.
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
   * The scenario that was performed; for a generated session, a requirement.
   */
  scenario?: string;
  /**
   * Operation to the number of its calls.
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
   * Parts of its traffic that could not be judged.
   */
  gaps?: ReportGap[];
  /**
   * Notes about this recording, as in `remarks` of the whole report.
   */
  remarks?: string[];
  /**
   * Warnings, such as a torn last line or a file that was left out.
   */
  warnings?: string[];
  [k: string]: unknown;
}
/**
 * The target's declarations, from the trace's header or from the command line.
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
   * Secrets that the recorder was told of: token in the trace to the secret's name.
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
   * JSON Pointer into the line of the first exchange; empty for the whole line.
   */
  pointer: string;
  expected: string;
  /**
   * The value that was found; null also if there was no value.
   */
  received: {
    [k: string]: unknown;
  };
  message: string;
  verdict?: Verdict;
  /**
   * In `together`, the recording; absent if only all recordings together show it.
   */
  file?: string;
  /**
   * The kind of breach: a code that is the same in every run, whatever the wording.
   */
  kind?: string;
  /**
   * The operation of the first exchange, if it has one.
   */
  operation?: string;
  /**
   * The members of a list that the finding is about; each is a breach of its own.
   */
  elements?: string[];
  /**
   * A text that is equal for repeats of one defect.
   */
  fold?: string;
  [k: string]: unknown;
}
/**
 * What reached the harness's model, if that was recorded or is all that was asked for.
 */
export interface ReportModel {
  /**
   * The recording of the model.
   */
  file: string;
  /**
   * true if no model was asked: a host that the kit plays wrote the requests.
   */
  played?: boolean;
  verdicts: {
    [k: string]: ReportVerdict;
  };
  [k: string]: unknown;
}
/**
 * Traffic that could not be judged because the recorder or a capture lacks a part of it.
 */
export interface ReportGap {
  /**
   * not carried, not decoded, not captured, or not kept whole.
   */
  lack: string;
  /**
   * Method and operation, or the path if it is outside the contract.
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
   * The mistake in words, if one mistake breaks several requirements, each in its own way.
   */
  says?: string;
  verdict: Verdict;
  /**
   * Whether all of its failures are known failures.
   */
  known?: boolean;
  /**
   * Other requirements that it breaches.
   */
  also?: ReportAlso[];
  /**
   * How many traces show it; 0 if only all traces together show it.
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
   * Operation to the number of its calls that show it.
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
   * The line number in that file.
   */
  line?: number;
  pointer?: string;
  expected?: string;
  /**
   * The received value as one line of text.
   */
  received?: string;
  /**
   * The places in the connector's code that sent the exchange, the innermost first, if the driver can tell.
   */
  sources?: ReportSource[];
  /**
   * How many findings show the problem.
   */
  times: number;
  [k: string]: unknown;
}
/**
 * A line of the connector's code.
 */
export interface ReportSource {
  /**
   * The path, relative to the folder in which the run was started, if it is below that.
   */
  file: string;
  line: number;
  [k: string]: unknown;
}
/**
 * Parts of the run that were not judged; absent in reports of early kits.
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
   * Whether the run ended early, so that the scenarios that it lacks are not known.
   */
  others?: boolean;
  [k: string]: unknown;
}
/**
 * How much of the contract the traces exercise: operations, fields, answers, requirements; absent unless it was asked for.
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
 * Further breaches of the next contract, if the connector's release is between two; they do not change the exit status.
 */
export interface ReportNewer {
  contract: string;
  /**
   * How many traces were judged by that contract.
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
   * How many traces breach the requirement.
   */
  traces: number;
  message: string;
  /**
   * The first trace that breaches it.
   */
  file?: string;
  [k: string]: unknown;
}
/**
 * Tools and fields that the model cannot reach through the connector, if its tools are known; for information.
 */
export interface ReportUnreached {
  /**
   * Tools that the connector does not offer, and whose operations were not called.
   */
  tools: string[];
  /**
   * Tool that the connector offers, to the fields that it cannot pass on.
   */
  fields: {
    [k: string]: string[];
  };
  /**
   * Tools that the connector offers with a schema that lacks every field the tool needs.
   */
  unfillable: string[];
  later?: ReportUnreachedLater;
  [k: string]: unknown;
}
/**
 * The tools and fields that only the next contract has, if the connector's release is between two.
 */
export interface ReportUnreachedLater {
  /**
   * The next contract.
   */
  contract: string;
  /**
   * Tools that the connector does not offer, and whose operations were not called.
   */
  tools: string[];
  /**
   * Tool that the connector offers, to the fields that it cannot pass on.
   */
  fields: {
    [k: string]: string[];
  };
  [k: string]: unknown;
}
/**
 * The generated sessions, if there were any.
 */
export interface ReportGenerated {
  seed: number;
  /**
   * How many sessions were performed.
   */
  performed: number;
  /**
   * Name of each outage that users meet, to the number of sessions that had it.
   */
  outages?: {
    [k: string]: number;
  };
  /**
   * Kind of step to how many were skipped, because connector or harness has no counterpart.
   */
  skipped?: {
    [k: string]: number;
  };
  /**
   * Traffic of these sessions that could not be judged, with how often that was so.
   */
  gaps?: {
    [k: string]: number;
  };
  /**
   * Outages that no session could have, each with the reason and the remedy.
   */
  lost?: string[];
  [k: string]: unknown;
}
/**
 * How the time of the run was spent; absent unless it was asked for.
 */
export interface ReportTimeSpent {
  /**
   * Seconds by the clock since the start of the process.
   */
  wall_s: number;
  /**
   * Seconds by the clock of each phase, in order.
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
   * The activity's group, such as process starts or waiting.
   */
  of: string;
  /**
   * Seconds, summed over the workers.
   */
  s: number;
  times: number;
  [k: string]: unknown;
}
