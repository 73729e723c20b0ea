/** A test function like those of node:test and vitest. */
type Test = ((name: string, body: () => void) => unknown) & { skip?: (name: string, body: () => void) => unknown };

/** Drive a target once and register one test per requirement. Await it. */
export function conformance(settings: {
  /** The name of the target in signet-conformance.toml. */
  target: string;
  /** The runner's test function (default: that of node:test). */
  test?: Test;
  /** Further options for `signet-conformance run`, such as `["-k", "SIG-AGENT"]`. */
  options?: string[];
  /** Let a SHOULD fail too. */
  strict?: boolean;
  cwd?: string;
  env?: Record<string, string | undefined>;
}): Promise<void>;
