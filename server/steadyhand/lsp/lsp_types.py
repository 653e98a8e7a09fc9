"""The standard LSP types that the server uses. Written by protocol/generate_lsp.py: change it, run it.

A class has the members of lsprotocol's class of that name. `SHAPES` describes how their JSON is read and written
(`lsp.rpc.lsp_converter` does it), also for types without a class. Members keep lsprotocol's order.
"""

# ruff: noqa: RUF023

from __future__ import annotations

import enum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Value:
    """The base of all classes here: values are equal when their members are."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        members = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({members})"


class Field:
    """One member: its key in JSON, its attribute, its kind (see `lsp_converter`), whether it is required.

    `default`: a member with this value is not written; None if there is no default. `always`: the member is written
    with any value. `limits`: the integers that it may be."""

    __slots__ = ("key", "name", "kind", "required", "default", "always", "limits")

    def __init__(
        self, key: str, name: str, kind: str, required: bool = False, *, default: object = None, always: bool = False,
        limits: range | None = None,
    ) -> None:  # fmt: skip
        self.key = key
        self.name = name
        self.kind = kind
        self.required = required
        self.default = default
        self.always = always or required
        self.limits = limits


class Method:
    """A method of LSP: whether it is a request, and the kinds of its params and its result; "": it has none."""

    __slots__ = ("params", "request", "result")

    def __init__(self, request: bool, params: str, result: str) -> None:
        self.request = request
        self.params = params
        self.result = result


class MessageType(enum.IntEnum):
    Error = 1
    Warning = 2
    Info = 3
    Log = 4
    Debug = 5


class CodeActionKind(str, enum.Enum):
    Empty = ""
    QuickFix = "quickfix"
    Refactor = "refactor"
    RefactorExtract = "refactor.extract"
    RefactorInline = "refactor.inline"
    RefactorMove = "refactor.move"
    RefactorRewrite = "refactor.rewrite"
    Source = "source"
    SourceOrganizeImports = "source.organizeImports"
    SourceFixAll = "source.fixAll"
    Notebook = "notebook"


class DiagnosticSeverity(enum.IntEnum):
    Error = 1
    Warning = 2
    Information = 3
    Hint = 4


class Position(Value):
    __slots__ = ("line", "character")

    def __init__(self, line: int, character: int) -> None:
        self.line = line
        self.character = character


class Range(Value):
    __slots__ = ("start", "end")

    def __init__(self, start: Position, end: Position) -> None:
        self.start = start
        self.end = end


class WorkspaceFolder(Value):
    __slots__ = ("uri", "name")

    def __init__(self, uri: str, name: str) -> None:
        self.uri = uri
        self.name = name


class InitializeParams(Value):
    __slots__ = (
        "capabilities",
        "process_id",
        "client_info",
        "locale",
        "root_path",
        "root_uri",
        "initialization_options",
        "trace",
        "work_done_token",
        "workspace_folders",
    )

    def __init__(
        self,
        capabilities: ClientCapabilities,
        process_id: int | None = None,
        client_info: object = None,
        locale: str | None = None,
        root_path: str | None = None,
        root_uri: str | None = None,
        initialization_options: object = None,
        trace: str | None = None,
        work_done_token: object = None,
        workspace_folders: Sequence[WorkspaceFolder] | None = None,
    ) -> None:
        self.capabilities = capabilities
        self.process_id = process_id
        self.client_info = client_info
        self.locale = locale
        self.root_path = root_path
        self.root_uri = root_uri
        self.initialization_options = initialization_options
        self.trace = trace
        self.work_done_token = work_done_token
        self.workspace_folders = workspace_folders


class InitializedParams(Value):
    __slots__ = ()


class ClientCapabilities(Value):
    __slots__ = ("workspace", "text_document", "notebook_document", "window", "general", "experimental")

    def __init__(
        self,
        workspace: WorkspaceClientCapabilities | None = None,
        text_document: object = None,
        notebook_document: object = None,
        window: WindowClientCapabilities | None = None,
        general: GeneralClientCapabilities | None = None,
        experimental: object = None,
    ) -> None:
        self.workspace = workspace
        self.text_document = text_document
        self.notebook_document = notebook_document
        self.window = window
        self.general = general
        self.experimental = experimental


class GeneralClientCapabilities(Value):
    __slots__ = ("stale_request_support", "regular_expressions", "markdown", "position_encodings")

    def __init__(
        self,
        stale_request_support: object = None,
        regular_expressions: object = None,
        markdown: object = None,
        position_encodings: Sequence[str] | None = None,
    ) -> None:
        self.stale_request_support = stale_request_support
        self.regular_expressions = regular_expressions
        self.markdown = markdown
        self.position_encodings = position_encodings


class WindowClientCapabilities(Value):
    __slots__ = ("work_done_progress", "show_message", "show_document")

    def __init__(
        self, work_done_progress: bool | None = None, show_message: object = None, show_document: object = None
    ) -> None:
        self.work_done_progress = work_done_progress
        self.show_message = show_message
        self.show_document = show_document


class WorkspaceClientCapabilities(Value):
    __slots__ = (
        "apply_edit",
        "workspace_edit",
        "did_change_configuration",
        "did_change_watched_files",
        "symbol",
        "execute_command",
        "workspace_folders",
        "configuration",
        "semantic_tokens",
        "code_lens",
        "file_operations",
        "inline_value",
        "inlay_hint",
        "diagnostics",
        "folding_range",
        "text_document_content",
    )

    def __init__(
        self,
        apply_edit: bool | None = None,
        workspace_edit: object = None,
        did_change_configuration: object = None,
        did_change_watched_files: object = None,
        symbol: object = None,
        execute_command: object = None,
        workspace_folders: bool | None = None,
        configuration: bool | None = None,
        semantic_tokens: object = None,
        code_lens: CodeLensWorkspaceClientCapabilities | None = None,
        file_operations: object = None,
        inline_value: object = None,
        inlay_hint: object = None,
        diagnostics: object = None,
        folding_range: object = None,
        text_document_content: TextDocumentContentClientCapabilities | None = None,
    ) -> None:
        self.apply_edit = apply_edit
        self.workspace_edit = workspace_edit
        self.did_change_configuration = did_change_configuration
        self.did_change_watched_files = did_change_watched_files
        self.symbol = symbol
        self.execute_command = execute_command
        self.workspace_folders = workspace_folders
        self.configuration = configuration
        self.semantic_tokens = semantic_tokens
        self.code_lens = code_lens
        self.file_operations = file_operations
        self.inline_value = inline_value
        self.inlay_hint = inlay_hint
        self.diagnostics = diagnostics
        self.folding_range = folding_range
        self.text_document_content = text_document_content


class CodeLensWorkspaceClientCapabilities(Value):
    __slots__ = ("refresh_support",)

    def __init__(self, refresh_support: bool | None = None) -> None:
        self.refresh_support = refresh_support


class TextDocumentContentClientCapabilities(Value):
    __slots__ = ("dynamic_registration",)

    def __init__(self, dynamic_registration: bool | None = None) -> None:
        self.dynamic_registration = dynamic_registration


class TextDocumentIdentifier(Value):
    __slots__ = ("uri",)

    def __init__(self, uri: str) -> None:
        self.uri = uri


class VersionedTextDocumentIdentifier(Value):
    __slots__ = ("version", "uri")

    def __init__(self, version: int, uri: str) -> None:
        self.version = version
        self.uri = uri


class TextDocumentItem(Value):
    __slots__ = ("uri", "language_id", "version", "text")

    def __init__(self, uri: str, language_id: str, version: int, text: str) -> None:
        self.uri = uri
        self.language_id = language_id
        self.version = version
        self.text = text


class DidOpenTextDocumentParams(Value):
    __slots__ = ("text_document",)

    def __init__(self, text_document: TextDocumentItem) -> None:
        self.text_document = text_document


class DidChangeTextDocumentParams(Value):
    __slots__ = ("text_document", "content_changes")

    def __init__(
        self,
        text_document: VersionedTextDocumentIdentifier,
        content_changes: Sequence[TextDocumentContentChangePartial | TextDocumentContentChangeWholeDocument],
    ) -> None:
        self.text_document = text_document
        self.content_changes = content_changes


class DidSaveTextDocumentParams(Value):
    __slots__ = ("text_document", "text")

    def __init__(self, text_document: TextDocumentIdentifier, text: str | None = None) -> None:
        self.text_document = text_document
        self.text = text


class DidCloseTextDocumentParams(Value):
    __slots__ = ("text_document",)

    def __init__(self, text_document: TextDocumentIdentifier) -> None:
        self.text_document = text_document


class TextDocumentContentChangePartial(Value):
    __slots__ = ("range", "text", "range_length")

    def __init__(self, range: Range, text: str, range_length: int | None = None) -> None:
        self.range = range
        self.text = text
        self.range_length = range_length


class TextDocumentContentChangeWholeDocument(Value):
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class DidChangeWorkspaceFoldersParams(Value):
    __slots__ = ("event",)

    def __init__(self, event: WorkspaceFoldersChangeEvent) -> None:
        self.event = event


class WorkspaceFoldersChangeEvent(Value):
    __slots__ = ("added", "removed")

    def __init__(self, added: Sequence[WorkspaceFolder], removed: Sequence[WorkspaceFolder]) -> None:
        self.added = added
        self.removed = removed


class DidChangeConfigurationParams(Value):
    __slots__ = ("settings",)

    def __init__(self, settings: object) -> None:
        self.settings = settings


class ApplyWorkspaceEditParams(Value):
    __slots__ = ("edit", "label", "metadata")

    def __init__(self, edit: WorkspaceEdit, label: str | None = None, metadata: object = None) -> None:
        self.edit = edit
        self.label = label
        self.metadata = metadata


class ApplyWorkspaceEditResult(Value):
    __slots__ = ("applied", "failure_reason", "failed_change")

    def __init__(self, applied: bool, failure_reason: str | None = None, failed_change: int | None = None) -> None:
        self.applied = applied
        self.failure_reason = failure_reason
        self.failed_change = failed_change


class WorkspaceEdit(Value):
    __slots__ = ("changes", "document_changes", "change_annotations")

    def __init__(
        self, changes: object = None, document_changes: object = None, change_annotations: object = None
    ) -> None:
        self.changes = changes
        self.document_changes = document_changes
        self.change_annotations = change_annotations


class TextDocumentEdit(Value):
    __slots__ = ("text_document", "edits")

    def __init__(self, text_document: OptionalVersionedTextDocumentIdentifier, edits: object) -> None:
        self.text_document = text_document
        self.edits = edits


class OptionalVersionedTextDocumentIdentifier(Value):
    __slots__ = ("uri", "version")

    def __init__(self, uri: str, version: int | None = None) -> None:
        self.uri = uri
        self.version = version


class TextEdit(Value):
    __slots__ = ("range", "new_text")

    def __init__(self, range: Range, new_text: str) -> None:
        self.range = range
        self.new_text = new_text


class CodeActionParams(Value):
    __slots__ = ("text_document", "range", "context", "work_done_token", "partial_result_token")

    def __init__(
        self,
        text_document: TextDocumentIdentifier,
        range: Range,
        context: CodeActionContext,
        work_done_token: object = None,
        partial_result_token: object = None,
    ) -> None:
        self.text_document = text_document
        self.range = range
        self.context = context
        self.work_done_token = work_done_token
        self.partial_result_token = partial_result_token


class CodeActionContext(Value):
    __slots__ = ("diagnostics", "only", "trigger_kind")

    def __init__(
        self, diagnostics: Sequence[Diagnostic], only: Sequence[str] | None = None, trigger_kind: int | None = None
    ) -> None:
        self.diagnostics = diagnostics
        self.only = only
        self.trigger_kind = trigger_kind


class CodeAction(Value):
    __slots__ = ("title", "kind", "diagnostics", "is_preferred", "disabled", "edit", "command", "data", "tags")

    def __init__(
        self,
        title: str,
        kind: str | None = None,
        diagnostics: Sequence[Diagnostic] | None = None,
        is_preferred: bool | None = None,
        disabled: object = None,
        edit: WorkspaceEdit | None = None,
        command: Command | None = None,
        data: object = None,
        tags: Sequence[int] | None = None,
    ) -> None:
        self.title = title
        self.kind = kind
        self.diagnostics = diagnostics
        self.is_preferred = is_preferred
        self.disabled = disabled
        self.edit = edit
        self.command = command
        self.data = data
        self.tags = tags


class CodeLensParams(Value):
    __slots__ = ("text_document", "work_done_token", "partial_result_token")

    def __init__(
        self, text_document: TextDocumentIdentifier, work_done_token: object = None, partial_result_token: object = None
    ) -> None:
        self.text_document = text_document
        self.work_done_token = work_done_token
        self.partial_result_token = partial_result_token


class CodeLens(Value):
    __slots__ = ("range", "command", "data")

    def __init__(self, range: Range, command: Command | None = None, data: object = None) -> None:
        self.range = range
        self.command = command
        self.data = data


class Command(Value):
    __slots__ = ("title", "command", "tooltip", "arguments")

    def __init__(
        self, title: str, command: str, tooltip: str | None = None, arguments: Sequence[object] | None = None
    ) -> None:
        self.title = title
        self.command = command
        self.tooltip = tooltip
        self.arguments = arguments


class Diagnostic(Value):
    __slots__ = (
        "range",
        "message",
        "severity",
        "code",
        "code_description",
        "source",
        "tags",
        "related_information",
        "data",
    )

    def __init__(
        self,
        range: Range,
        message: str,
        severity: int | None = None,
        code: object = None,
        code_description: object = None,
        source: str | None = None,
        tags: Sequence[int] | None = None,
        related_information: Sequence[object] | None = None,
        data: object = None,
    ) -> None:
        self.range = range
        self.message = message
        self.severity = severity
        self.code = code
        self.code_description = code_description
        self.source = source
        self.tags = tags
        self.related_information = related_information
        self.data = data


class PublishDiagnosticsParams(Value):
    __slots__ = ("uri", "diagnostics", "version")

    def __init__(self, uri: str, diagnostics: Sequence[Diagnostic], version: int | None = None) -> None:
        self.uri = uri
        self.diagnostics = diagnostics
        self.version = version


class ConfigurationParams(Value):
    __slots__ = ("items",)

    def __init__(self, items: Sequence[ConfigurationItem]) -> None:
        self.items = items


class ConfigurationItem(Value):
    __slots__ = ("scope_uri", "section")

    def __init__(self, scope_uri: str | None = None, section: str | None = None) -> None:
        self.scope_uri = scope_uri
        self.section = section


class TextDocumentContentParams(Value):
    __slots__ = ("uri",)

    def __init__(self, uri: str) -> None:
        self.uri = uri


class TextDocumentContentResult(Value):
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class TextDocumentContentRegistrationOptions(Value):
    __slots__ = ("schemes", "id")

    def __init__(self, schemes: Sequence[str], id: str | None = None) -> None:
        self.schemes = schemes
        self.id = id


class Registration(Value):
    __slots__ = ("id", "method", "register_options")

    def __init__(self, id: str, method: str, register_options: object = None) -> None:
        self.id = id
        self.method = method
        self.register_options = register_options


class RegistrationParams(Value):
    __slots__ = ("registrations",)

    def __init__(self, registrations: Sequence[Registration]) -> None:
        self.registrations = registrations


class LogMessageParams(Value):
    __slots__ = ("type", "message")

    def __init__(self, type: int, message: str) -> None:
        self.type = type
        self.message = message


class ShowMessageParams(Value):
    __slots__ = ("type", "message")

    def __init__(self, type: int, message: str) -> None:
        self.type = type
        self.message = message


class ShowMessageRequestParams(Value):
    __slots__ = ("type", "message", "actions")

    def __init__(self, type: int, message: str, actions: Sequence[MessageActionItem] | None = None) -> None:
        self.type = type
        self.message = message
        self.actions = actions


class MessageActionItem(Value):
    __slots__ = ("title",)

    def __init__(self, title: str) -> None:
        self.title = title


class ProgressParams(Value):
    __slots__ = ("token", "value")

    def __init__(self, token: object, value: object) -> None:
        self.token = token
        self.value = value


class WorkDoneProgressBegin(Value):
    __slots__ = ("title", "kind", "cancellable", "message", "percentage")

    def __init__(
        self,
        title: str,
        kind: str = "begin",
        cancellable: bool | None = None,
        message: str | None = None,
        percentage: int | None = None,
    ) -> None:
        self.title = title
        self.kind = kind
        self.cancellable = cancellable
        self.message = message
        self.percentage = percentage


class WorkDoneProgressEnd(Value):
    __slots__ = ("kind", "message")

    def __init__(self, kind: str = "end", message: str | None = None) -> None:
        self.kind = kind
        self.message = message


class WorkDoneProgressCreateParams(Value):
    __slots__ = ("token",)

    def __init__(self, token: object) -> None:
        self.token = token


class WorkDoneProgressCancelParams(Value):
    __slots__ = ("token",)

    def __init__(self, token: object) -> None:
        self.token = token


SHAPES: Mapping[str, tuple[Field, ...]] = {
    "InitializeParams": (
        Field("capabilities", "capabilities", "ClientCapabilities", True),
        Field("processId", "process_id", "integer?", always=True),
        Field("clientInfo", "client_info", "ClientInfo?"),
        Field("locale", "locale", "text?"),
        Field("rootPath", "root_path", "text?", always=True),
        Field("rootUri", "root_uri", "text?", always=True),
        Field("initializationOptions", "initialization_options", "any"),
        Field("trace", "trace", "text?"),
        Field("workDoneToken", "work_done_token", "any"),
        Field("workspaceFolders", "workspace_folders", "[WorkspaceFolder]?", always=True),
    ),
    "InitializedParams": (),
    "CodeActionParams": (
        Field("textDocument", "text_document", "TextDocumentIdentifier", True),
        Field("range", "range", "Range", True),
        Field("context", "context", "CodeActionContext", True),
        Field("workDoneToken", "work_done_token", "any"),
        Field("partialResultToken", "partial_result_token", "any"),
    ),
    "CodeLensParams": (
        Field("textDocument", "text_document", "TextDocumentIdentifier", True),
        Field("workDoneToken", "work_done_token", "any"),
        Field("partialResultToken", "partial_result_token", "any"),
    ),
    "TextDocumentContentParams": (Field("uri", "uri", "text", True),),
    "DidOpenTextDocumentParams": (Field("textDocument", "text_document", "TextDocumentItem", True),),
    "DidChangeTextDocumentParams": (
        Field("textDocument", "text_document", "VersionedTextDocumentIdentifier", True),
        Field("contentChanges", "content_changes", "[change]", True),
    ),
    "DidSaveTextDocumentParams": (
        Field("textDocument", "text_document", "TextDocumentIdentifier", True),
        Field("text", "text", "text?"),
    ),
    "DidCloseTextDocumentParams": (Field("textDocument", "text_document", "TextDocumentIdentifier", True),),
    "DidChangeWorkspaceFoldersParams": (Field("event", "event", "WorkspaceFoldersChangeEvent", True),),
    "DidChangeConfigurationParams": (Field("settings", "settings", "any", True),),
    "WorkDoneProgressCancelParams": (Field("token", "token", "any", True),),
    "ApplyWorkspaceEditResult": (
        Field("applied", "applied", "flag", True),
        Field("failureReason", "failure_reason", "text?"),
        Field("failedChange", "failed_change", "integer?", limits=range(1 << 31)),
    ),
    "MessageActionItem": (Field("title", "title", "text", True),),
    "ClientCapabilities": (
        Field("workspace", "workspace", "WorkspaceClientCapabilities?"),
        Field("textDocument", "text_document", "TextDocumentClientCapabilities?"),
        Field("notebookDocument", "notebook_document", "NotebookDocumentClientCapabilities?"),
        Field("window", "window", "WindowClientCapabilities?"),
        Field("general", "general", "GeneralClientCapabilities?"),
        Field("experimental", "experimental", "any"),
    ),
    "ClientInfo": (Field("name", "name", "text", True), Field("version", "version", "text?")),
    "WorkspaceFolder": (Field("uri", "uri", "text", True), Field("name", "name", "text", True)),
    "TextDocumentIdentifier": (Field("uri", "uri", "text", True),),
    "Range": (Field("start", "start", "Position", True), Field("end", "end", "Position", True)),
    "CodeActionContext": (
        Field("diagnostics", "diagnostics", "[Diagnostic]", True),
        Field("only", "only", "[text?]?"),
        Field("triggerKind", "trigger_kind", "integer?"),
    ),
    "TextDocumentItem": (
        Field("uri", "uri", "text", True),
        Field("languageId", "language_id", "word", True),
        Field("version", "version", "integer", True, limits=range(-(1 << 31), 1 << 31)),
        Field("text", "text", "text", True),
    ),
    "VersionedTextDocumentIdentifier": (
        Field("version", "version", "integer", True, limits=range(-(1 << 31), 1 << 31)),
        Field("uri", "uri", "text", True),
    ),
    "TextDocumentContentChangePartial": (
        Field("range", "range", "Range", True),
        Field("text", "text", "text", True),
        Field("rangeLength", "range_length", "integer?", limits=range(1 << 31)),
    ),
    "TextDocumentContentChangeWholeDocument": (Field("text", "text", "text", True),),
    "WorkspaceFoldersChangeEvent": (
        Field("added", "added", "[WorkspaceFolder]", True),
        Field("removed", "removed", "[WorkspaceFolder]", True),
    ),
    "WorkspaceClientCapabilities": (
        Field("applyEdit", "apply_edit", "flag?"),
        Field("workspaceEdit", "workspace_edit", "WorkspaceEditClientCapabilities?"),
        Field("didChangeConfiguration", "did_change_configuration", "DidChangeConfigurationClientCapabilities?"),
        Field("didChangeWatchedFiles", "did_change_watched_files", "DidChangeWatchedFilesClientCapabilities?"),
        Field("symbol", "symbol", "WorkspaceSymbolClientCapabilities?"),
        Field("executeCommand", "execute_command", "ExecuteCommandClientCapabilities?"),
        Field("workspaceFolders", "workspace_folders", "flag?"),
        Field("configuration", "configuration", "flag?"),
        Field("semanticTokens", "semantic_tokens", "SemanticTokensWorkspaceClientCapabilities?"),
        Field("codeLens", "code_lens", "CodeLensWorkspaceClientCapabilities?"),
        Field("fileOperations", "file_operations", "FileOperationClientCapabilities?"),
        Field("inlineValue", "inline_value", "InlineValueWorkspaceClientCapabilities?"),
        Field("inlayHint", "inlay_hint", "InlayHintWorkspaceClientCapabilities?"),
        Field("diagnostics", "diagnostics", "DiagnosticWorkspaceClientCapabilities?"),
        Field("foldingRange", "folding_range", "FoldingRangeWorkspaceClientCapabilities?"),
        Field("textDocumentContent", "text_document_content", "TextDocumentContentClientCapabilities?"),
    ),
    "TextDocumentClientCapabilities": (
        Field("synchronization", "synchronization", "TextDocumentSyncClientCapabilities?"),
        Field("filters", "filters", "TextDocumentFilterClientCapabilities?"),
        Field("completion", "completion", "CompletionClientCapabilities?"),
        Field("hover", "hover", "HoverClientCapabilities?"),
        Field("signatureHelp", "signature_help", "SignatureHelpClientCapabilities?"),
        Field("declaration", "declaration", "DeclarationClientCapabilities?"),
        Field("definition", "definition", "DefinitionClientCapabilities?"),
        Field("typeDefinition", "type_definition", "TypeDefinitionClientCapabilities?"),
        Field("implementation", "implementation", "ImplementationClientCapabilities?"),
        Field("references", "references", "ReferenceClientCapabilities?"),
        Field("documentHighlight", "document_highlight", "DocumentHighlightClientCapabilities?"),
        Field("documentSymbol", "document_symbol", "DocumentSymbolClientCapabilities?"),
        Field("codeAction", "code_action", "CodeActionClientCapabilities?"),
        Field("codeLens", "code_lens", "CodeLensClientCapabilities?"),
        Field("documentLink", "document_link", "DocumentLinkClientCapabilities?"),
        Field("colorProvider", "color_provider", "DocumentColorClientCapabilities?"),
        Field("formatting", "formatting", "DocumentFormattingClientCapabilities?"),
        Field("rangeFormatting", "range_formatting", "DocumentRangeFormattingClientCapabilities?"),
        Field("onTypeFormatting", "on_type_formatting", "DocumentOnTypeFormattingClientCapabilities?"),
        Field("rename", "rename", "RenameClientCapabilities?"),
        Field("foldingRange", "folding_range", "FoldingRangeClientCapabilities?"),
        Field("selectionRange", "selection_range", "SelectionRangeClientCapabilities?"),
        Field("publishDiagnostics", "publish_diagnostics", "PublishDiagnosticsClientCapabilities?"),
        Field("callHierarchy", "call_hierarchy", "CallHierarchyClientCapabilities?"),
        Field("semanticTokens", "semantic_tokens", "SemanticTokensClientCapabilities?"),
        Field("linkedEditingRange", "linked_editing_range", "LinkedEditingRangeClientCapabilities?"),
        Field("moniker", "moniker", "MonikerClientCapabilities?"),
        Field("typeHierarchy", "type_hierarchy", "TypeHierarchyClientCapabilities?"),
        Field("inlineValue", "inline_value", "InlineValueClientCapabilities?"),
        Field("inlayHint", "inlay_hint", "InlayHintClientCapabilities?"),
        Field("diagnostic", "diagnostic", "DiagnosticClientCapabilities?"),
        Field("inlineCompletion", "inline_completion", "InlineCompletionClientCapabilities?"),
    ),
    "NotebookDocumentClientCapabilities": (
        Field("synchronization", "synchronization", "NotebookDocumentSyncClientCapabilities", True),
    ),
    "WindowClientCapabilities": (
        Field("workDoneProgress", "work_done_progress", "flag?"),
        Field("showMessage", "show_message", "ShowMessageRequestClientCapabilities?"),
        Field("showDocument", "show_document", "ShowDocumentClientCapabilities?"),
    ),
    "GeneralClientCapabilities": (
        Field("staleRequestSupport", "stale_request_support", "StaleRequestSupportOptions?"),
        Field("regularExpressions", "regular_expressions", "RegularExpressionsClientCapabilities?"),
        Field("markdown", "markdown", "MarkdownClientCapabilities?"),
        Field("positionEncodings", "position_encodings", "[word]?"),
    ),
    "Position": (
        Field("line", "line", "integer", True, limits=range(1 << 31)),
        Field("character", "character", "integer", True, limits=range(1 << 31)),
    ),
    "Diagnostic": (
        Field("range", "range", "Range", True),
        Field("message", "message", "text", True),
        Field("severity", "severity", "integer?"),
        Field("code", "code", "any"),
        Field("codeDescription", "code_description", "CodeDescription?"),
        Field("source", "source", "text?"),
        Field("tags", "tags", "[integer]?"),
        Field("relatedInformation", "related_information", "[DiagnosticRelatedInformation]?"),
        Field("data", "data", "any"),
    ),
    "WorkspaceEditClientCapabilities": (
        Field("documentChanges", "document_changes", "flag?"),
        Field("resourceOperations", "resource_operations", "[text]?"),
        Field("failureHandling", "failure_handling", "text?"),
        Field("normalizesLineEndings", "normalizes_line_endings", "flag?"),
        Field("changeAnnotationSupport", "change_annotation_support", "ChangeAnnotationsSupportOptions?"),
        Field("metadataSupport", "metadata_support", "flag?"),
        Field("snippetEditSupport", "snippet_edit_support", "flag?"),
    ),
    "DidChangeConfigurationClientCapabilities": (Field("dynamicRegistration", "dynamic_registration", "flag?"),),
    "DidChangeWatchedFilesClientCapabilities": (
        Field("dynamicRegistration", "dynamic_registration", "flag?"),
        Field("relativePatternSupport", "relative_pattern_support", "flag?"),
    ),
    "WorkspaceSymbolClientCapabilities": (
        Field("dynamicRegistration", "dynamic_registration", "flag?"),
        Field("symbolKind", "symbol_kind", "ClientSymbolKindOptions?"),
        Field("tagSupport", "tag_support", "ClientSymbolTagOptions?"),
        Field("resolveSupport", "resolve_support", "ClientSymbolResolveOptions?"),
    ),
    "ExecuteCommandClientCapabilities": (Field("dynamicRegistration", "dynamic_registration", "flag?"),),
    "SemanticTokensWorkspaceClientCapabilities": (Field("refreshSupport", "refresh_support", "flag?"),),
    "CodeLensWorkspaceClientCapabilities": (Field("refreshSupport", "refresh_support", "flag?"),),
    "FileOperationClientCapabilities": (
        Field("dynamicRegistration", "dynamic_registration", "flag?"),
        Field("didCreate", "did_create", "flag?"),
        Field("willCreate", "will_create", "flag?"),
        Field("didRename", "did_rename", "flag?"),
        Field("willRename", "will_rename", "flag?"),
        Field("didDelete", "did_delete", "flag?"),
        Field("willDelete", "will_delete", "flag?"),
    ),
    "InlineValueWorkspaceClientCapabilities": (Field("refreshSupport", "refresh_support", "flag?"),),
    "InlayHintWorkspaceClientCapabilities": (Field("refreshSupport", "refresh_support", "flag?"),),
    "DiagnosticWorkspaceClientCapabilities": (Field("refreshSupport", "refresh_support", "flag?"),),
    "FoldingRangeWorkspaceClientCapabilities": (Field("refreshSupport", "refresh_support", "flag?"),),
    "TextDocumentContentClientCapabilities": (Field("dynamicRegistration", "dynamic_registration", "flag?"),),
    "TextDocumentSyncClientCapabilities": (
        Field("dynamicRegistration", "dynamic_registration", "flag?"),
        Field("willSave", "will_save", "flag?"),
        Field("willSaveWaitUntil", "will_save_wait_until", "flag?"),
        Field("didSave", "did_save", "flag?"),
    ),
    "TextDocumentFilterClientCapabilities": (Field("relativePatternSupport", "relative_pattern_support", "flag?"),),
    "CompletionClientCapabilities": (
        Field("dynamicRegistration", "dynamic_registration", "flag?"),
        Field("completionItem", "completion_item", "ClientCompletionItemOptions?"),
        Field("completionItemKind", "completion_item_kind", "ClientCompletionItemOptionsKind?"),
        Field("insertTextMode", "insert_text_mode", "integer?"),
        Field("contextSupport", "context_support", "flag?"),
        Field("completionList", "completion_list", "CompletionListCapabilities?"),
    ),
    "HoverClientCapabilities": (
        Field("dynamicRegistration", "dynamic_registration", "flag?"),
        Field("contentFormat", "content_format", "[text]?"),
    ),
    "SignatureHelpClientCapabilities": (
        Field("dynamicRegistration", "dynamic_registration", "flag?"),
        Field("signatureInformation", "signature_information", "ClientSignatureInformationOptions?"),
        Field("contextSupport", "context_support", "flag?"),
    ),
    "DeclarationClientCapabilities": (
        Field("dynamicRegistration", "dynamic_registration", "flag?"),
        Field("linkSupport", "link_support", "flag?"),
    ),
    "DefinitionClientCapabilities": (
        Field("dynamicRegistration", "dynamic_registration", "flag?"),
        Field("linkSupport", "link_support", "flag?"),
    ),
    "TypeDefinitionClientCapabilities": (
        Field("dynamicRegistration", "dynamic_registration", "flag?"),
        Field("linkSupport", "link_support", "flag?"),
    ),
    "ImplementationClientCapabilities": (
        Field("dynamicRegistration", "dynamic_registration", "flag?"),
        Field("linkSupport", "link_support", "flag?"),
    ),
    "ReferenceClientCapabilities": (Field("dynamicRegistration", "dynamic_registration", "flag?"),),
    "DocumentHighlightClientCapabilities": (Field("dynamicRegistration", "dynamic_registration", "flag?"),),
    "DocumentSymbolClientCapabilities": (
        Field("dynamicRegistration", "dynamic_registration", "flag?"),
        Field("symbolKind", "symbol_kind", "ClientSymbolKindOptions?"),
        Field("hierarchicalDocumentSymbolSupport", "hierarchical_document_symbol_support", "flag?"),
        Field("tagSupport", "tag_support", "ClientSymbolTagOptions?"),
        Field("labelSupport", "label_support", "flag?"),
    ),
    "CodeActionClientCapabilities": (
        Field("dynamicRegistration", "dynamic_registration", "flag?"),
        Field("codeActionLiteralSupport", "code_action_literal_support", "ClientCodeActionLiteralOptions?"),
        Field("isPreferredSupport", "is_preferred_support", "flag?"),
        Field("disabledSupport", "disabled_support", "flag?"),
        Field("dataSupport", "data_support", "flag?"),
        Field("resolveSupport", "resolve_support", "ClientCodeActionResolveOptions?"),
        Field("honorsChangeAnnotations", "honors_change_annotations", "flag?"),
        Field("documentationSupport", "documentation_support", "flag?"),
        Field("tagSupport", "tag_support", "CodeActionTagOptions?"),
    ),
    "CodeLensClientCapabilities": (
        Field("dynamicRegistration", "dynamic_registration", "flag?"),
        Field("resolveSupport", "resolve_support", "ClientCodeLensResolveOptions?"),
    ),
    "DocumentLinkClientCapabilities": (
        Field("dynamicRegistration", "dynamic_registration", "flag?"),
        Field("tooltipSupport", "tooltip_support", "flag?"),
    ),
    "DocumentColorClientCapabilities": (Field("dynamicRegistration", "dynamic_registration", "flag?"),),
    "DocumentFormattingClientCapabilities": (Field("dynamicRegistration", "dynamic_registration", "flag?"),),
    "DocumentRangeFormattingClientCapabilities": (
        Field("dynamicRegistration", "dynamic_registration", "flag?"),
        Field("rangesSupport", "ranges_support", "flag?"),
    ),
    "DocumentOnTypeFormattingClientCapabilities": (Field("dynamicRegistration", "dynamic_registration", "flag?"),),
    "RenameClientCapabilities": (
        Field("dynamicRegistration", "dynamic_registration", "flag?"),
        Field("prepareSupport", "prepare_support", "flag?"),
        Field("prepareSupportDefaultBehavior", "prepare_support_default_behavior", "integer?"),
        Field("honorsChangeAnnotations", "honors_change_annotations", "flag?"),
    ),
    "FoldingRangeClientCapabilities": (
        Field("dynamicRegistration", "dynamic_registration", "flag?"),
        Field("rangeLimit", "range_limit", "integer?", limits=range(1 << 31)),
        Field("lineFoldingOnly", "line_folding_only", "flag?"),
        Field("foldingRangeKind", "folding_range_kind", "ClientFoldingRangeKindOptions?"),
        Field("foldingRange", "folding_range", "ClientFoldingRangeOptions?"),
    ),
    "SelectionRangeClientCapabilities": (Field("dynamicRegistration", "dynamic_registration", "flag?"),),
    "PublishDiagnosticsClientCapabilities": (
        Field("versionSupport", "version_support", "flag?"),
        Field("relatedInformation", "related_information", "flag?"),
        Field("tagSupport", "tag_support", "ClientDiagnosticsTagOptions?"),
        Field("codeDescriptionSupport", "code_description_support", "flag?"),
        Field("dataSupport", "data_support", "flag?"),
    ),
    "CallHierarchyClientCapabilities": (Field("dynamicRegistration", "dynamic_registration", "flag?"),),
    "SemanticTokensClientCapabilities": (
        Field("requests", "requests", "ClientSemanticTokensRequestOptions", True),
        Field("tokenTypes", "token_types", "[text]", True),
        Field("tokenModifiers", "token_modifiers", "[text]", True),
        Field("formats", "formats", "[text]", True),
        Field("dynamicRegistration", "dynamic_registration", "flag?"),
        Field("overlappingTokenSupport", "overlapping_token_support", "flag?"),
        Field("multilineTokenSupport", "multiline_token_support", "flag?"),
        Field("serverCancelSupport", "server_cancel_support", "flag?"),
        Field("augmentsSyntaxTokens", "augments_syntax_tokens", "flag?"),
    ),
    "LinkedEditingRangeClientCapabilities": (Field("dynamicRegistration", "dynamic_registration", "flag?"),),
    "MonikerClientCapabilities": (Field("dynamicRegistration", "dynamic_registration", "flag?"),),
    "TypeHierarchyClientCapabilities": (Field("dynamicRegistration", "dynamic_registration", "flag?"),),
    "InlineValueClientCapabilities": (Field("dynamicRegistration", "dynamic_registration", "flag?"),),
    "InlayHintClientCapabilities": (
        Field("dynamicRegistration", "dynamic_registration", "flag?"),
        Field("resolveSupport", "resolve_support", "ClientInlayHintResolveOptions?"),
    ),
    "DiagnosticClientCapabilities": (
        Field("dynamicRegistration", "dynamic_registration", "flag?"),
        Field("relatedDocumentSupport", "related_document_support", "flag?"),
        Field("relatedInformation", "related_information", "flag?"),
        Field("tagSupport", "tag_support", "ClientDiagnosticsTagOptions?"),
        Field("codeDescriptionSupport", "code_description_support", "flag?"),
        Field("dataSupport", "data_support", "flag?"),
    ),
    "InlineCompletionClientCapabilities": (Field("dynamicRegistration", "dynamic_registration", "flag?"),),
    "NotebookDocumentSyncClientCapabilities": (
        Field("dynamicRegistration", "dynamic_registration", "flag?"),
        Field("executionSummarySupport", "execution_summary_support", "flag?"),
    ),
    "ShowMessageRequestClientCapabilities": (
        Field("messageActionItem", "message_action_item", "ClientShowMessageActionItemOptions?"),
    ),
    "ShowDocumentClientCapabilities": (Field("support", "support", "flag", True),),
    "StaleRequestSupportOptions": (
        Field("cancel", "cancel", "flag", True),
        Field("retryOnContentModified", "retry_on_content_modified", "[text]", True),
    ),
    "RegularExpressionsClientCapabilities": (
        Field("engine", "engine", "text", True),
        Field("version", "version", "text?"),
    ),
    "MarkdownClientCapabilities": (
        Field("parser", "parser", "text", True),
        Field("version", "version", "text?"),
        Field("allowedTags", "allowed_tags", "[text]?"),
    ),
    "CodeDescription": (Field("href", "href", "text", True),),
    "DiagnosticRelatedInformation": (
        Field("location", "location", "Location", True),
        Field("message", "message", "text", True),
    ),
    "ChangeAnnotationsSupportOptions": (Field("groupsOnLabel", "groups_on_label", "flag?"),),
    "ClientSymbolKindOptions": (Field("valueSet", "value_set", "[integer]?"),),
    "ClientSymbolTagOptions": (Field("valueSet", "value_set", "[integer]", True),),
    "ClientSymbolResolveOptions": (Field("properties", "properties", "[text]", True),),
    "ClientCompletionItemOptions": (
        Field("snippetSupport", "snippet_support", "flag?"),
        Field("commitCharactersSupport", "commit_characters_support", "flag?"),
        Field("documentationFormat", "documentation_format", "[text]?"),
        Field("deprecatedSupport", "deprecated_support", "flag?"),
        Field("preselectSupport", "preselect_support", "flag?"),
        Field("tagSupport", "tag_support", "CompletionItemTagOptions?"),
        Field("insertReplaceSupport", "insert_replace_support", "flag?"),
        Field("resolveSupport", "resolve_support", "ClientCompletionItemResolveOptions?"),
        Field("insertTextModeSupport", "insert_text_mode_support", "ClientCompletionItemInsertTextModeOptions?"),
        Field("labelDetailsSupport", "label_details_support", "flag?"),
    ),
    "ClientCompletionItemOptionsKind": (Field("valueSet", "value_set", "[code]?"),),
    "CompletionListCapabilities": (
        Field("itemDefaults", "item_defaults", "[text]?"),
        Field("applyKindSupport", "apply_kind_support", "flag?"),
    ),
    "ClientSignatureInformationOptions": (
        Field("documentationFormat", "documentation_format", "[text]?"),
        Field("parameterInformation", "parameter_information", "ClientSignatureParameterInformationOptions?"),
        Field("activeParameterSupport", "active_parameter_support", "flag?"),
        Field("noActiveParameterSupport", "no_active_parameter_support", "flag?"),
    ),
    "ClientCodeActionLiteralOptions": (
        Field("codeActionKind", "code_action_kind", "ClientCodeActionKindOptions", True),
    ),
    "ClientCodeActionResolveOptions": (Field("properties", "properties", "[text]", True),),
    "CodeActionTagOptions": (Field("valueSet", "value_set", "[integer]", True),),
    "ClientCodeLensResolveOptions": (Field("properties", "properties", "[text]", True),),
    "ClientFoldingRangeKindOptions": (Field("valueSet", "value_set", "[word]?"),),
    "ClientFoldingRangeOptions": (Field("collapsedText", "collapsed_text", "flag?"),),
    "ClientDiagnosticsTagOptions": (Field("valueSet", "value_set", "[integer]", True),),
    "ClientSemanticTokensRequestOptions": (
        Field("range", "range", "any"),
        Field("full", "full", "flag ClientSemanticTokensRequestFullDelta?"),
    ),
    "ClientInlayHintResolveOptions": (Field("properties", "properties", "[text]", True),),
    "ClientShowMessageActionItemOptions": (
        Field("additionalPropertiesSupport", "additional_properties_support", "flag?"),
    ),
    "Location": (Field("uri", "uri", "text", True), Field("range", "range", "Range", True)),
    "CompletionItemTagOptions": (Field("valueSet", "value_set", "[integer]", True),),
    "ClientCompletionItemResolveOptions": (Field("properties", "properties", "[text]", True),),
    "ClientCompletionItemInsertTextModeOptions": (Field("valueSet", "value_set", "[integer]", True),),
    "ClientSignatureParameterInformationOptions": (Field("labelOffsetSupport", "label_offset_support", "flag?"),),
    "ClientCodeActionKindOptions": (Field("valueSet", "value_set", "[text?]", True),),
    "ClientSemanticTokensRequestFullDelta": (Field("delta", "delta", "flag?"),),
    "ApplyWorkspaceEditParams": (
        Field("edit", "edit", "any", True),
        Field("label", "label", "any"),
        Field("metadata", "metadata", "any"),
    ),
    "WorkspaceEdit": (
        Field("changes", "changes", "any"),
        Field("documentChanges", "document_changes", "any"),
        Field("changeAnnotations", "change_annotations", "any"),
    ),
    "TextDocumentEdit": (Field("textDocument", "text_document", "any", True), Field("edits", "edits", "any", True)),
    "OptionalVersionedTextDocumentIdentifier": (
        Field("uri", "uri", "any", True),
        Field("version", "version", "any", always=True),
    ),
    "TextEdit": (Field("range", "range", "any", True), Field("newText", "new_text", "any", True)),
    "CodeAction": (
        Field("title", "title", "any", True),
        Field("kind", "kind", "any"),
        Field("diagnostics", "diagnostics", "any"),
        Field("isPreferred", "is_preferred", "any"),
        Field("disabled", "disabled", "any"),
        Field("edit", "edit", "any"),
        Field("command", "command", "any"),
        Field("data", "data", "any"),
        Field("tags", "tags", "any"),
    ),
    "CodeLens": (
        Field("range", "range", "any", True),
        Field("command", "command", "any"),
        Field("data", "data", "any"),
    ),
    "Command": (
        Field("title", "title", "any", True),
        Field("command", "command", "any", True),
        Field("tooltip", "tooltip", "any"),
        Field("arguments", "arguments", "any"),
    ),
    "PublishDiagnosticsParams": (
        Field("uri", "uri", "any", True),
        Field("diagnostics", "diagnostics", "any", True),
        Field("version", "version", "any"),
    ),
    "ConfigurationParams": (Field("items", "items", "any", True),),
    "ConfigurationItem": (Field("scopeUri", "scope_uri", "any"), Field("section", "section", "any")),
    "TextDocumentContentResult": (Field("text", "text", "any", True),),
    "TextDocumentContentRegistrationOptions": (Field("schemes", "schemes", "any", True), Field("id", "id", "any")),
    "Registration": (
        Field("id", "id", "any", True),
        Field("method", "method", "any", True),
        Field("registerOptions", "register_options", "any"),
    ),
    "RegistrationParams": (Field("registrations", "registrations", "any", True),),
    "LogMessageParams": (Field("type", "type", "any", True), Field("message", "message", "any", True)),
    "ShowMessageParams": (Field("type", "type", "any", True), Field("message", "message", "any", True)),
    "ShowMessageRequestParams": (
        Field("type", "type", "any", True),
        Field("message", "message", "any", True),
        Field("actions", "actions", "any"),
    ),
    "ProgressParams": (Field("token", "token", "any", True), Field("value", "value", "any", True)),
    "WorkDoneProgressBegin": (
        Field("title", "title", "any", True),
        Field("kind", "kind", "any", default="begin", always=True),
        Field("cancellable", "cancellable", "any"),
        Field("message", "message", "any"),
        Field("percentage", "percentage", "any"),
    ),
    "WorkDoneProgressEnd": (
        Field("kind", "kind", "any", default="end", always=True),
        Field("message", "message", "any"),
    ),
    "WorkDoneProgressCreateParams": (Field("token", "token", "any", True),),
}

CLASSES: Mapping[str, type[Value]] = {
    "Position": Position,
    "Range": Range,
    "WorkspaceFolder": WorkspaceFolder,
    "InitializeParams": InitializeParams,
    "InitializedParams": InitializedParams,
    "ClientCapabilities": ClientCapabilities,
    "GeneralClientCapabilities": GeneralClientCapabilities,
    "WindowClientCapabilities": WindowClientCapabilities,
    "WorkspaceClientCapabilities": WorkspaceClientCapabilities,
    "CodeLensWorkspaceClientCapabilities": CodeLensWorkspaceClientCapabilities,
    "TextDocumentContentClientCapabilities": TextDocumentContentClientCapabilities,
    "TextDocumentIdentifier": TextDocumentIdentifier,
    "VersionedTextDocumentIdentifier": VersionedTextDocumentIdentifier,
    "TextDocumentItem": TextDocumentItem,
    "DidOpenTextDocumentParams": DidOpenTextDocumentParams,
    "DidChangeTextDocumentParams": DidChangeTextDocumentParams,
    "DidSaveTextDocumentParams": DidSaveTextDocumentParams,
    "DidCloseTextDocumentParams": DidCloseTextDocumentParams,
    "TextDocumentContentChangePartial": TextDocumentContentChangePartial,
    "TextDocumentContentChangeWholeDocument": TextDocumentContentChangeWholeDocument,
    "DidChangeWorkspaceFoldersParams": DidChangeWorkspaceFoldersParams,
    "WorkspaceFoldersChangeEvent": WorkspaceFoldersChangeEvent,
    "DidChangeConfigurationParams": DidChangeConfigurationParams,
    "ApplyWorkspaceEditParams": ApplyWorkspaceEditParams,
    "ApplyWorkspaceEditResult": ApplyWorkspaceEditResult,
    "WorkspaceEdit": WorkspaceEdit,
    "TextDocumentEdit": TextDocumentEdit,
    "OptionalVersionedTextDocumentIdentifier": OptionalVersionedTextDocumentIdentifier,
    "TextEdit": TextEdit,
    "CodeActionParams": CodeActionParams,
    "CodeActionContext": CodeActionContext,
    "CodeAction": CodeAction,
    "CodeLensParams": CodeLensParams,
    "CodeLens": CodeLens,
    "Command": Command,
    "Diagnostic": Diagnostic,
    "PublishDiagnosticsParams": PublishDiagnosticsParams,
    "ConfigurationParams": ConfigurationParams,
    "ConfigurationItem": ConfigurationItem,
    "TextDocumentContentParams": TextDocumentContentParams,
    "TextDocumentContentResult": TextDocumentContentResult,
    "TextDocumentContentRegistrationOptions": TextDocumentContentRegistrationOptions,
    "Registration": Registration,
    "RegistrationParams": RegistrationParams,
    "LogMessageParams": LogMessageParams,
    "ShowMessageParams": ShowMessageParams,
    "ShowMessageRequestParams": ShowMessageRequestParams,
    "MessageActionItem": MessageActionItem,
    "ProgressParams": ProgressParams,
    "WorkDoneProgressBegin": WorkDoneProgressBegin,
    "WorkDoneProgressEnd": WorkDoneProgressEnd,
    "WorkDoneProgressCreateParams": WorkDoneProgressCreateParams,
    "WorkDoneProgressCancelParams": WorkDoneProgressCancelParams,
}

INITIALIZE = "initialize"
INITIALIZED = "initialized"
SHUTDOWN = "shutdown"
EXIT = "exit"
CANCEL_REQUEST = "$/cancelRequest"
PROGRESS = "$/progress"
TEXT_DOCUMENT_DID_OPEN = "textDocument/didOpen"
TEXT_DOCUMENT_DID_CHANGE = "textDocument/didChange"
TEXT_DOCUMENT_DID_SAVE = "textDocument/didSave"
TEXT_DOCUMENT_DID_CLOSE = "textDocument/didClose"
TEXT_DOCUMENT_CODE_ACTION = "textDocument/codeAction"
TEXT_DOCUMENT_CODE_LENS = "textDocument/codeLens"
TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS = "textDocument/publishDiagnostics"
WORKSPACE_APPLY_EDIT = "workspace/applyEdit"
WORKSPACE_EXECUTE_COMMAND = "workspace/executeCommand"
WORKSPACE_CONFIGURATION = "workspace/configuration"
WORKSPACE_DID_CHANGE_CONFIGURATION = "workspace/didChangeConfiguration"
WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS = "workspace/didChangeWorkspaceFolders"
WORKSPACE_CODE_LENS_REFRESH = "workspace/codeLens/refresh"
WORKSPACE_TEXT_DOCUMENT_CONTENT = "workspace/textDocumentContent"
CLIENT_REGISTER_CAPABILITY = "client/registerCapability"
WINDOW_LOG_MESSAGE = "window/logMessage"
WINDOW_SHOW_MESSAGE = "window/showMessage"
WINDOW_SHOW_MESSAGE_REQUEST = "window/showMessageRequest"
WINDOW_WORK_DONE_PROGRESS_CREATE = "window/workDoneProgress/create"
WINDOW_WORK_DONE_PROGRESS_CANCEL = "window/workDoneProgress/cancel"

METHODS: Mapping[str, Method] = {
    INITIALIZE: Method(True, "InitializeParams", "any"),
    INITIALIZED: Method(False, "InitializedParams", ""),
    SHUTDOWN: Method(True, "", "any"),
    EXIT: Method(False, "", ""),
    CANCEL_REQUEST: Method(False, "any", ""),
    PROGRESS: Method(False, "any", ""),
    TEXT_DOCUMENT_DID_OPEN: Method(False, "DidOpenTextDocumentParams", ""),
    TEXT_DOCUMENT_DID_CHANGE: Method(False, "DidChangeTextDocumentParams", ""),
    TEXT_DOCUMENT_DID_SAVE: Method(False, "DidSaveTextDocumentParams", ""),
    TEXT_DOCUMENT_DID_CLOSE: Method(False, "DidCloseTextDocumentParams", ""),
    TEXT_DOCUMENT_CODE_ACTION: Method(True, "CodeActionParams", "any"),
    TEXT_DOCUMENT_CODE_LENS: Method(True, "CodeLensParams", "any"),
    TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS: Method(False, "any", ""),
    WORKSPACE_APPLY_EDIT: Method(True, "any", "ApplyWorkspaceEditResult"),
    WORKSPACE_EXECUTE_COMMAND: Method(True, "any", "any"),
    WORKSPACE_CONFIGURATION: Method(True, "any", "[any]"),
    WORKSPACE_DID_CHANGE_CONFIGURATION: Method(False, "DidChangeConfigurationParams", ""),
    WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: Method(False, "DidChangeWorkspaceFoldersParams", ""),
    WORKSPACE_CODE_LENS_REFRESH: Method(True, "", "any"),
    WORKSPACE_TEXT_DOCUMENT_CONTENT: Method(True, "TextDocumentContentParams", "any"),
    CLIENT_REGISTER_CAPABILITY: Method(True, "any", "any"),
    WINDOW_LOG_MESSAGE: Method(False, "any", ""),
    WINDOW_SHOW_MESSAGE: Method(False, "any", ""),
    WINDOW_SHOW_MESSAGE_REQUEST: Method(True, "any", "MessageActionItem?"),
    WINDOW_WORK_DONE_PROGRESS_CREATE: Method(True, "any", "any"),
    WINDOW_WORK_DONE_PROGRESS_CANCEL: Method(False, "WorkDoneProgressCancelParams", ""),
}
NOTIFICATIONS = frozenset(
    {
        "$/cancelRequest",
        "$/logTrace",
        "$/progress",
        "$/setTrace",
        "exit",
        "initialized",
        "notebookDocument/didChange",
        "notebookDocument/didClose",
        "notebookDocument/didOpen",
        "notebookDocument/didSave",
        "telemetry/event",
        "textDocument/didChange",
        "textDocument/didClose",
        "textDocument/didOpen",
        "textDocument/didSave",
        "textDocument/publishDiagnostics",
        "textDocument/willSave",
        "window/logMessage",
        "window/showMessage",
        "window/workDoneProgress/cancel",
        "workspace/didChangeConfiguration",
        "workspace/didChangeWatchedFiles",
        "workspace/didChangeWorkspaceFolders",
        "workspace/didCreateFiles",
        "workspace/didDeleteFiles",
        "workspace/didRenameFiles",
    }
)
