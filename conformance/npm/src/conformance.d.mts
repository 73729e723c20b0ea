/** A test function as node:test, vitest and others have it. */
type Test = ((name: string, body: () => void) => unknown) & { skip?: (name: string, body: () => void) => unknown };

/** Drive a target once and register a test a requirement. Await it. */
export function conformance(settings: {
  /** The name of the target in signet-conformance.toml. */
  target: string;
  /** The runner's own test function; that of node:test without it. */
  test?: Test;
  /** Further words for `signet-conformance run`, such as `["-k", "SIG-AGENT"]`. */
  options?: string[];
  /** Let a SHOULD fail too. */
  strict?: boolean;
  cwd?: string;
  env?: Record<string, string | undefined>;
}): Promise<void>;
