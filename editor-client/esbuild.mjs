// Bundles the extension (for the editor's Node), the chat (for its webview) and, with --tests, the unit tests.
import { readdirSync, rmSync } from "node:fs";
import { build } from "esbuild";

const shared = {
  bundle: true,
  minify: true,
  legalComments: "linked",
  sourcemap: false,
  logLevel: "warning",
  charset: "utf8",
};

if (process.argv.includes("--tests")) {
  rmSync("out/test", { recursive: true, force: true });
  await build({
    ...shared,
    minify: false,
    entryPoints: readdirSync("test")
      .filter((name) => name.endsWith(".test.ts"))
      .map((name) => `test/${name}`),
    outdir: "out/test",
    platform: "node",
    format: "cjs",
    target: "node20",
    external: ["jsdom"],
    sourcemap: "inline",
  });
} else {
  await build({
    ...shared,
    entryPoints: ["src/extension.ts"],
    outfile: "out/extension.js",
    platform: "node",
    format: "cjs",
    target: "node20",
    external: ["vscode"],
  });
  await build({
    ...shared,
    entryPoints: { chat: "src/views/chat/main.tsx" },
    outdir: "out",
    platform: "browser",
    format: "iife",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
  });
}
