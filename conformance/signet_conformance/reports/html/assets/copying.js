/* What can be taken elsewhere: a request as a command, a trace as a scenario, a breach as a test that performs it. */

function quoted(text) {
  return `'${visible(text).replace(/'/g, "'\\''")}'`;
}

/* What a client adds by itself, or what would be wrong in another request. */
const OF_THE_TRANSPORT = new Set(["host", "content-length", "connection", "transfer-encoding", "accept-encoding", "keep-alive", "te", "trailer", "upgrade", "expect"]);

function asCurl(data, row, request) {
  const query = (request.query || []).map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&");
  const words = ["curl", "-sS", "-X", quoted(data.text(row[METHOD])),
    `"$SIGNET_DAEMON_URL"${quoted(data.text(row[PATH]) + (query ? `?${query}` : ""))}`];
  for (const [name, value] of request.headers) {
    if (!OF_THE_TRANSPORT.has(name.toLowerCase())) words.push("-H", quoted(`${name}: ${value}`));
  }
  if (request.body !== undefined) words.push("--data-raw", quoted(request.body));
  const cut = request.note ? `# ${request.note}\n` : "";
  return `${cut}${words.join(" ")}\n`;
}

/* The scenario that the marks of a trace tell of; null where they tell of none, or not in full. */
function asScenario(data) {
  const steps = [], scenario = data.marks.find((mark) => mark[2] === "scenario");
  let env = null;
  for (const [, , name, , said] of data.marks) {
    if (!["step", "fault", "bypass"].includes(name)) continue;
    if (!said) return null;
    if (name === "bypass") env = { SIGNET_BYPASS: "1" };
    else if (name === "step") steps.push(stepOf(data, said));
    else if (said.kind === "restart") steps.push(...(said.on === false ? [] : [{ step: "restart_daemon" }]));
    else steps.push(said.on === false ? { step: "fault_off" } : faultOf(said));
  }
  if (!steps.length) return null;
  const told = scenario && scenario[4] ? scenario[4] : {};
  const head = { name: told.name || "recorded", title: told.title || `What ${data.file} was recorded with` };
  return env ? { ...head, env, steps } : { ...head, steps };
}

function stepOf(data, said) {
  const { index, agent, ...step } = said;
  const place = agent === undefined ? -1 : data.agents.indexOf(agent);
  return place < 0 ? step : { ...step, agent: place };
}

function faultOf(said) {
  const { on, id, match, count, ...fault } = said;
  const step = { step: "fault", fault };
  if (match && Object.keys(match).length) step.match = match;
  return count ? { ...step, count } : step;
}

/* Ends in a command that performs the scenario and judges by one requirement. */
function asTest(data, scenario, requirement) {
  const file = `${scenario.name.replace(/[^\w.-]/g, "-")}.json`;
  const text = JSON.stringify(scenario).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const only = requirement ? ` -k ${quoted(requirement)}` : "";
  return `cat > ${file} <<'SCENARIO'\n${text}\nSCENARIO\nsignet-conformance run ${quoted(data.target || "TARGET")} --scenario ${file}${only}\n`;
}

function copyButton(label, textOf) {
  const told = make("span", { role: "status", class: "quiet" });
  const button = make("button", { type: "button", onclick: async () => {
    const text = textOf();
    try {
      await navigator.clipboard.writeText(text);
      told.replaceChildren(" copied");
    } catch {
      /* No right to the clipboard: the text is shown and selected, to be copied by hand. */
      const area = make("textarea", { readonly: true, rows: "6", "aria-label": label });
      area.value = text;
      told.replaceChildren(area);
      area.select();
    }
  } }, label);
  return make("span", {}, button, told);
}

function copyButtons(data, row, request, findings) {
  const buttons = [];
  if (request) buttons.push(copyButton("Copy as curl", () => asCurl(data, row, request)));
  const scenario = asScenario(data);
  if (scenario) {
    buttons.push(copyButton("Copy the scenario", () => `${JSON.stringify(scenario, null, 1)}\n`));
    buttons.push(copyButton("Copy as a test", () => asTest(data, scenario, findings.length ? findings[0][1] : "")));
  }
  return make("div", { class: "copies" }, buttons);
}
