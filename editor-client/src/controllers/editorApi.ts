/** The editor's answers to the requests of the server: questions, save a document, read a secret. */
import * as vscode from "vscode";
import type { EditorApi } from "../client/serverConnection";
import type { QuestionController } from "./questionController";
import type {
  DocumentEncodingParams,
  DocumentEncodingResult,
  DocumentSaveParams,
  DocumentSaveResult,
} from "../protocol";
import { secretName } from "../editor/apiKeys";

export function createEditorApi(questions: QuestionController, secrets: vscode.SecretStorage): EditorApi {
  return {
    "steadyhand/permission/ask": (params, withdrawn) => questions.askPermission(params, withdrawn),
    "steadyhand/user/ask": (params, withdrawn) => questions.askUser(params, withdrawn),
    "steadyhand/document/save": saveDocument,
    "steadyhand/document/encoding": (params) => Promise.resolve(documentEncoding(params)),
    "steadyhand/secret/get": async ({ name }) => {
      const value = (await secrets.get(name)) ?? (await secrets.get(secretName(name)));
      return value === undefined ? {} : { value };
    },
  };
}

/** Save the document if it still has the version that the server knows. */
async function saveDocument({ uri, version }: DocumentSaveParams): Promise<DocumentSaveResult> {
  const document = openDocument(uri);
  if (document?.version !== version) return { saved: false };
  return { saved: await document.save() };
}

/** Report the encoding in which the editor reads and saves an open document; VS Code knows it from 1.100 on. */
function documentEncoding({ uri }: DocumentEncodingParams): DocumentEncodingResult {
  const document: (vscode.TextDocument & { readonly encoding?: string }) | undefined = openDocument(uri);
  return document?.encoding === undefined ? {} : { encoding: document.encoding };
}

function openDocument(uri: string): vscode.TextDocument | undefined {
  const wanted = vscode.Uri.parse(uri).toString();
  return vscode.workspace.textDocuments.find((one) => one.uri.toString() === wanted);
}
