// The review of what the agent changed: places in the file, keys, lenses, the lightbulb, undo of everything; a rewind.
import assert from "node:assert/strict";
import { until } from "../waiting.mjs";

const BEFORE = `# Tea

green tea
black tea
white tea

Boil the water first.
Warm the pot.
Pour and wait.

`;
const PROMPT = [
  "replace green tea with jasmine tea in tea.md",
  'replace "white tea\\n" with "" in tea.md',
  "replace Warm the pot. with Warm the pot and the cups. in tea.md",
  'replace "and wait." with "and wait.\\nServe it with sugar." in tea.md',
].join("\n");
const CHANGED = BEFORE.replace("green tea", "jasmine tea")
  .replace("white tea\n", "")
  .replace("Warm the pot.", "Warm the pot and the cups.")
  .replace("and wait.", "and wait.\nServe it with sugar.");
const MENU_MAX_MS = 3_000;

/** A window in which the agent has changed tea.md in four places, and the file is open. */
async function openWithChanges(editor, name, options) {
  const window = await editor.open(name, { "tea.md": BEFORE }, options);
  await window.send(PROMPT);
  await window.answer("Allow in this session");
  await window.waitFor(".turn-end-title", "1 file changed");
  assert.equal(window.file("tea.md"), CHANGED);
  await window.openFile("tea.md");
  await lenses(window, 4);
  return window;
}

/** Wait until the open file has so many changes under review, each with its lenses. */
function lenses(window, count) {
  return until(`${count} changes are shown`, async () => (await lens(window, "Undo").count()) === count);
}

function lens(window, label) {
  return window.page.locator(".monaco-editor .codelens-decoration a", { hasText: label });
}

/** Wait until the cursor is in this line, counted from 1. */
function cursorIn(window, line) {
  const shown = window.page.locator(".part.statusbar", { hasText: `Ln ${line}, Col 1` });
  return shown.waitFor();
}

export const review = {
  /** Changes are marked; keys go from one to the next, keep one and undo one; what the person wrote stays. */
  review: {
    async run(editor) {
      const window = await openWithChanges(editor, "review");
      const { keyboard } = window.page;
      await window.pictures("review");
      await window.line("# Tea").click();
      await keyboard.press("Home");
      await keyboard.press("Control+Alt+j");
      await cursorIn(window, 3);
      await keyboard.press("Control+Alt+j");
      await cursorIn(window, 5);
      // Only here: after an edit or a decision the editor draws the lenses again, and a click can fall between.
      await lens(window, "Undo").nth(1).click();
      await until("the removed line is back", () => window.file("tea.md").includes("white tea\n"));
      await window.toast("Undone: a part of tea.md").waitFor();
      await lenses(window, 3);
      await window.line("white tea").waitFor();
      await window.pictures("review-undone");
      await window.dismissToasts();

      await keyboard.press("Control+Alt+k");
      await cursorIn(window, 3);
      await keyboard.press("Control+Alt+y");
      await lenses(window, 2);
      assert.ok(window.file("tea.md").includes("jasmine tea"), "to keep changes no file");

      await window.line("# Tea").click();
      await keyboard.press("End");
      await keyboard.type(" for the guests");
      await keyboard.press("Control+s");
      await until("saved", () => window.file("tea.md").includes("# Tea for the guests\n"));
      await keyboard.press("Control+Alt+j");
      await cursorIn(window, 8);
      await keyboard.press("Control+Alt+z");
      const expected = BEFORE.replace("green", "jasmine")
        .replace("# Tea", "# Tea for the guests")
        .replace("and wait.", "and wait.\nServe it with sugar.");
      await until("undone beside the person's text", () => window.file("tea.md") === expected);
      await lenses(window, 1);
      await window.picture("review-beside-mine");
      await keyboard.press("Control+Alt+j");
      await cursorIn(window, 10);
      await keyboard.press("Control+Alt+y");
      await lenses(window, 0);
      assert.equal(window.file("tea.md"), expected);
      await window.command("Steadyhand: Review Changes");
      await window.toast("No change of this session is waiting for a review.").waitFor();
    },
  },

  /** The lightbulb at a change keeps and undoes it, as in every editor; then everything is undone after a question. */
  undo: {
    async run(editor) {
      const window = await openWithChanges(editor, "undo", { theme: "contrast" });
      const { keyboard } = window.page;
      const fixes = window.page.locator(".action-widget .monaco-list-row");
      await window.line("jasmine tea").click();
      // Press again if the menu closes: the editor loads it again when the lenses arrive.
      await until("the code actions", async () => {
        await keyboard.press("Control+.");
        const shown = fixes.filter({ hasText: "Steadyhand: Undo this change" }).first();
        return shown.waitFor({ timeout: MENU_MAX_MS }).then(
          () => true,
          () => false,
        );
      });
      await fixes.filter({ hasText: "Steadyhand: Keep" }).waitFor();
      await window.picture("review-lightbulb-contrast");
      await keyboard.press("ArrowDown");
      await keyboard.press("Enter");
      await until("one change is undone", () => window.file("tea.md") === CHANGED.replace("jasmine", "green"));
      await lenses(window, 3);
      await window.command("Steadyhand: Undo All Changes");
      await window.dialog("Undo the changes of this session in 1 file?").waitFor();
      await window.picture("undo-all-contrast");
      await window.dialogButton("Undo all").click();
      await until("everything is as it was", () => window.file("tea.md") === BEFORE);
      await lenses(window, 0);
      await window.picture("undone-all-contrast");
    },
  },

  /** A rewind to before a prompt takes its files and the conversation back, and the chat says so. */
  rewind: {
    async run(editor) {
      const window = await editor.open("rewind", { "tea.md": BEFORE });
      await window.send("replace green tea with jasmine tea in tea.md");
      await window.answer("Allow in this session");
      await window.waitFor(".turn-end-title", "1 file changed");
      await window.send('write milk.md with "- milk\\n"');
      await window.answer("Allow once");
      await until("the second file", () => window.file("milk.md") !== undefined);
      await window.waitIdle();
      await window.openFile("tea.md");
      await lenses(window, 1);
      await window.command("Steadyhand: Rewind");
      await window.page.locator(".quick-input-list .monaco-list-row", { hasText: "write milk.md" }).first().waitFor();
      await window.pictures("rewind");
      await window.pick("replace green tea");
      await window.pick("Files and conversation");
      await until(
        "both files are as before",
        () => window.file("milk.md") === undefined && window.file("tea.md") === BEFORE,
      );
      await window.toast("Rewound 2 files.").waitFor();
      await window.waitFor(".message.user", "Rewind to before");
      await window.waitGone(".message.user", "write milk.md");
      await window.line("green tea").waitFor();
      await lenses(window, 0);
      await window.pictures("rewound");
    },
  },
};
