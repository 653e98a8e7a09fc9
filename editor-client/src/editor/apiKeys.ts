/** The API keys of providers, in the secret store of the editor: never in settings, never in logs. */
import * as vscode from "vscode";

const PROVIDERS: readonly string[] = ["deepseek", "openai", "anthropic", "openrouter", "compatible"];

/** The name of a provider's key in the secret store; the server asks for it by this name. */
export function secretName(provider: string): string {
  return `${provider}.apiKey`;
}

/** Ask for a provider and its key, and store it. */
export async function setApiKey(secrets: vscode.SecretStorage): Promise<void> {
  const configured = vscode.workspace.getConfiguration("steadyhand").get("model.provider", "");
  const providers = [...PROVIDERS].sort((a, b) => Number(b === configured) - Number(a === configured));
  const provider = await vscode.window.showQuickPick(providers, { title: "Set an API key: choose the provider" });
  if (provider === undefined) return;
  const key = await vscode.window.showInputBox({
    title: `Key for ${provider}`,
    prompt: "VS Code keeps the key in its secret store. Leave the box empty to remove the key.",
    password: true,
    ignoreFocusOut: true,
  });
  if (key === undefined) return;
  if (key === "") await secrets.delete(secretName(provider));
  else await secrets.store(secretName(provider), key);
}
