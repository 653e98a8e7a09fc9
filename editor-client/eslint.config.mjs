// Lint rules: strict and typed for the extension and its unit tests, recommended for the programs beside them.
import tseslint from "typescript-eslint";

/** The folders of src that each folder must not import. The chat is a page in a browser, so it has no editor either. */
const FORBIDDEN_IMPORTS = {
  "src/store": ["vscode", "**/client/*", "**/editor/*", "**/views/*", "**/controllers/*"],
  "src/client": ["**/editor/*", "**/views/*", "**/controllers/*"],
  "src/editor": ["**/views/*", "**/controllers/*"],
  "src/views": ["**/controllers/*"],
  "src/views/chat": ["vscode", "**/client/*", "**/editor/*", "**/controllers/*"],
};

export default tseslint.config(
  { ignores: ["out/", "server/", "node_modules/", "src/protocol.ts"] },
  {
    files: ["**/*.ts", "**/*.tsx"],
    extends: [...tseslint.configs.strictTypeChecked, ...tseslint.configs.stylisticTypeChecked],
    languageOptions: {
      parserOptions: {
        project: ["./tsconfig.json", "./tsconfig.webview.json", "./tsconfig.test.json"],
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "@typescript-eslint/no-unnecessary-condition": ["error", { allowConstantLoopConditions: true }],
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/switch-exhaustiveness-check": ["error", { considerDefaultExhaustiveForUnions: true }],
      "@typescript-eslint/no-unused-vars": ["error", { ignoreRestSiblings: true }],
      "no-console": "error",
      eqeqeq: "error",
      curly: ["error", "multi-line"],
    },
  },
  ...Object.entries(FORBIDDEN_IMPORTS).map(([folder, group]) => ({
    files: [`${folder}/**/*.{ts,tsx}`],
    rules: { "no-restricted-imports": ["error", { patterns: [{ group }] }] },
  })),
  {
    // test() of node:test returns a promise that its runner awaits.
    files: ["test/**/*.ts"],
    rules: { "@typescript-eslint/no-floating-promises": "off", "@typescript-eslint/no-non-null-assertion": "off" },
  },
  { files: ["**/*.mjs"], extends: [tseslint.configs.recommended] },
  // Prettier breaks code at this width. It leaves strings and comments alone, so the rule counts those too.
  { files: ["**/*.{ts,tsx,mjs}"], rules: { "max-len": ["error", { code: 120, ignoreUrls: true }] } },
);
