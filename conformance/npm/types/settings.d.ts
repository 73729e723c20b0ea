// Made from schemas/settings/signet-settings.schema.json by `npm run types`; not to be changed by hand.

/**
 * A repository's own settings: signet-conformance.toml, or [tool.signet-conformance] of pyproject.toml.
 */
export interface Settings {
  /**
   * one table for each target, such as [targets.openclaw] with module = "dist/index.js"
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
   * true if runs give the connector a token, which it then has to send
   */
  token?: boolean;
  /**
   * a whole number of characters, to which the connector cuts the user's text
   */
  prompt_chars?: number;
  /**
   * "connector" or "application": which of them applies the user's bypass (default: the connector)
   */
  bypass?: "connector" | "application";
  /**
   * a number of seconds: how long the connector may stay silent after an outage (default: 0)
   */
  recovers_s?: number;
  /**
   * the kind of connector
   */
  driver?: "command" | "command-hooks" | "http-adapter" | "mcp" | "node-plugin" | "python-plugin";
  /**
   * a few words that say what the connector is
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
   * The release of the harness that is played: the name of one of the kit's faces, or the path of a .json file.
   */
  face?: string;
  /**
   * a month or day such as 2026-04-23 on which the connector was released; the kit plays the harness release of that time
   */
  released?: string;
  /**
   * which sessions share a process of the connector: those of the whole run, those of an agent, or none
   */
  processes?: "one" | "agent" | "session";
  /**
   * a whole number such as 20: how many sessions a run generates if its command line does not say; fewer if they are slow
   */
  sessions?: number;
  /**
   * a list of words such as ["node", "{root}/driver.mjs"]: the command line that is started
   */
  command?: string[];
  /**
   * an address such as http://127.0.0.1:8080 of a server on this machine; {port} is replaced by a free port, {daemon} by the recorder's address
   */
  url?: string;
  /**
   * a table such as {onSessionStart = "/session-start"}: the path that serves each method of the runtime adapter
   */
  paths?: {
    [k: string]: string;
  };
  /**
   * a table of texts such as {SIGNET_ENABLED = "true"}: variables that are added to the connector's environment; {root} is replaced by the folder of the settings, {python} by the interpreter that runs the kit
   */
  env?: {
    [k: string]: string;
  };
  /**
   * a table such as {SIGNET_BYPASS = "1", SIGNET_ENABLED = "false"}: each documented variable that switches the connector's hooks off, with the value that does so (default: SIGNET_BYPASS)
   */
  bypass_env?: {
    [k: string]: string;
  };
  /**
   * a list such as ["bun", "node"]: programs that can run the connector's module; the first one found is used (default: bun for TypeScript, else what the harness uses for plugins)
   *
   * @minItems 1
   */
  runtime?: string | [string, ...string[]];
  /**
   * a path: the connector's file; the kit then does not search for it
   */
  module?: string;
  /**
   * Where the connector's file may be; the first file found is used.
   */
  files?: FilePlace[];
  /**
   * An instruction: how the file is built, or what the user still has to provide.
   */
  build?: string;
  /**
   * Name of each program that the connector installs, to the places where it may be.
   */
  programs?: {
    [k: string]: FilePlace[];
  };
  /**
   * a table such as {memory_store = "signet_remember"}: tool of the scenarios to the connector's own name for it
   */
  tools?: {
    [k: string]: string;
  };
  /**
   * a path: the file of hooks that is used instead of the one that the installer writes
   */
  config?: string;
  /**
   * a path: the folder of an older, built release of the connector; its installer runs first when the kit tests an upgrade
   */
  older?: string;
  /**
   * a table: the settings that the harness gives to the plugin
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
   * a path such as dist/index.js, below the package or below this folder and those above it
   */
  path: string;
  /**
   * the name in a package.json
   */
  package?: string;
}
/**
 * Facts that the connector declares about itself, because recordings cannot show them.
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
   * true if runs give the connector a token, which it then has to send
   */
  token?: boolean;
  /**
   * a whole number of characters, to which the connector cuts the user's text
   */
  prompt_chars?: number;
  /**
   * "connector" or "application": which of them applies the user's bypass (default: the connector)
   */
  bypass?: "connector" | "application";
  /**
   * a number of seconds: how long the connector may stay silent after an outage (default: 0)
   */
  recovers_s?: number;
}
