/** The server as the controllers see it: typed requests, commands and notifications. Tests replace it with fakes. */
import type { Commands, NotificationsToEditor, RequestsToServer } from "../protocol";

export interface ServerApi {
  request<Method extends keyof RequestsToServer>(
    method: Method,
    params: RequestsToServer[Method]["params"],
  ): Promise<RequestsToServer[Method]["result"]>;
  command<Name extends keyof Commands>(
    name: Name,
    ...args: Commands[Name]["arguments"]
  ): Promise<Commands[Name]["result"]>;
}

export type ServerNotification = {
  [Method in keyof NotificationsToEditor]: { readonly method: Method; readonly params: NotificationsToEditor[Method] };
}[keyof NotificationsToEditor];

export interface ServerError extends Error {
  readonly code: number;
  readonly data?: unknown;
}

/** JSON-RPC reserves the codes up to this one for its own errors. The server sends some of them. */
const LAST_JSON_RPC_CODE = -32600;
/** The codes of the server. The client library uses codes between the two ranges when no answer came. */
const FIRST_SERVER_CODE = -32061;
const LAST_SERVER_CODE = -32050;

/** Whether the server answered with this error; any other error means that the connection was lost. */
export function isServerError(error: unknown): error is ServerError {
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "number") return false;
  return error.code <= LAST_JSON_RPC_CODE || (error.code >= FIRST_SERVER_CODE && error.code <= LAST_SERVER_CODE);
}
