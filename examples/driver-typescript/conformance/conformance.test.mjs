import { conformance } from "signet-conformance/test";

await conformance({ target: "example-typescript", options: ["--scenarios", "0"] });
