// Made from schemas/settings/signet-settings.schema.json by `npm run types`; not to be changed by hand.

/**
 * A repository's own settings: signet-conformance.toml, or [tool.signet-conformance] of pyproject.toml.
 */
export interface Settings {
  /**
   * such as [targets.openclaw] module = "dist/index.js"
   */
  targets?: {
    [k: string]: OwnTarget;
  };
  [k: string]: unknown;
}
/**
 * A repository's settings for one target, with declarations at the top level or below `declared`.
 */
export interface OwnTarget {
  /**
   * a list of agent ids such as ["atlas-agent", "beacon-agent"]
   */
  agents?: string[];
  /**
   * a text: the name that the connector sends as its harness
   */
  harness?: string;
  /**
   * a table of seconds such as {start = 15.0, prompt = 5.0}
   */
  bounds_s?: {
    /**
     * a number of seconds above 0
     */
    [k: string]: number;
  };
  /**
   * a list of operations such as ["session-start", "session-end"]; docs/add-a-connector.md lists them
   */
  capabilities?: string[];
  /**
   * true where the connector is to be given a token
   */
  token?: boolean;
  /**
   * a whole number: after how many characters the connector cuts what the user says
   */
  prompt_chars?: number;
  /**
   * "connector" or "application": who applies the user's bypass; without it the connector
   */
  bypass?: "connector" | "application";
  /**
   * a number of seconds: how long after an outage the connector may be silent; without it 0
   */
  recovers_s?: number;
  /**
   * the kind of connector
   */
  driver?: "command" | "command-hooks" | "http-adapter" | "mcp" | "node-plugin" | "python-plugin";
  /**
   * what the connector is, in a few words
   */
  title?: string;
  /**
   * How the connector takes its agent id, as a sentence.
   */
  identity?: string;
  /**
   * Facts that a reader of a verdict should know, as sentences.
   */
  notes?: string[];
  /**
   * What release of which harness is played: the name of a face of the kit, or the path of a .json file.
   */
  face?: string;
  /**
   * a month or day such as 2026-04-23: when the connector came out; the release of its harness that people ran then is played
   */
  released?: string;
  /**
   * what shares a process: the whole run, the sessions of an agent, or one session
   */
  processes?: "one" | "agent" | "session";
  /**
   * a whole number such as 20: generated sessions of a run without a number of its own; fewer where one is slow
   */
  sessions?: number;
  /**
   * a list of words such as ["node", "{root}/driver.mjs"]: what is launched
   */
  command?: string[];
  /**
   * such as http://127.0.0.1:8080: the address of a server on this machine; {port} is replaced by a free port, {daemon} by the recorder
   */
  url?: string;
  /**
   * such as {onSessionStart = "/session-start"}: method of a runtime adapter to the path that serves it
   */
  paths?: {
    [k: string]: string;
  };
  /**
   * such as {SIGNET_ENABLED = "true"}: a table of texts, added to the connector's environment
   */
  env?: {
    [k: string]: string;
  };
  /**
   * such as {SIGNET_BYPASS = "1", SIGNET_ENABLED = "false"}: each documented variable that switches the connector's hooks off, with the value that does; without it SIGNET_BYPASS
   */
  bypass_env?: {
    [k: string]: string;
  };
  /**
   * such as ["bun", "node"]: what runs the connector's module: the first that is found
   *
   * @minItems 1
   */
  runtime?: string | [string, ...string[]];
  /**
   * a path: the connector's file, instead of looking for one
   */
  module?: string;
  /**
   * Places of the connector's file, the best first.
   */
  files?: FilePlace[];
  /**
   * How the file is made, or what is still to be provided, as an instruction.
   */
  build?: string;
  /**
   * Programs that the connector installs by name, with the places of each.
   */
  programs?: {
    [k: string]: FilePlace[];
  };
  /**
   * such as {memory_store = "signet_remember"}: tool of the scenarios to the connector's own name
   */
  tools?: {
    [k: string]: string;
  };
  /**
   * a path: the file of hooks, instead of what the installer writes
   */
  config?: string;
  /**
   * a path: the folder of an older release of the connector, built; its installer runs before this one's where the kit looks at upgrades
   */
  older?: string;
  /**
   * a table: what the harness gives to the plugin as its settings
   */
  plugin_config?: {
    [k: string]: unknown;
  };
  declared?: TargetDeclarations;
}
/**
 * A place where a file may be.
 */
export interface FilePlace {
  /**
   * a path below the package, or below any folder upwards
   */
  path: string;
  /**
   * the name in a package.json
   */
  package?: string;
}
/**
 * The connector's own statements that recordings cannot show.
 */
export interface TargetDeclarations {
  /**
   * a list of agent ids such as ["atlas-agent", "beacon-agent"]
   */
  agents?: string[];
  /**
   * a text: the name that the connector sends as its harness
   */
  harness?: string;
  /**
   * a table of seconds such as {start = 15.0, prompt = 5.0}
   */
  bounds_s?: {
    /**
     * a number of seconds above 0
     */
    [k: string]: number;
  };
  /**
   * a list of operations such as ["session-start", "session-end"]; docs/add-a-connector.md lists them
   */
  capabilities?: string[];
  /**
   * true where the connector is to be given a token
   */
  token?: boolean;
  /**
   * a whole number: after how many characters the connector cuts what the user says
   */
  prompt_chars?: number;
  /**
   * "connector" or "application": who applies the user's bypass; without it the connector
   */
  bypass?: "connector" | "application";
  /**
   * a number of seconds: how long after an outage the connector may be silent; without it 0
   */
  recovers_s?: number;
}
