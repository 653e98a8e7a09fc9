-- An uncertain effect of an earlier server, in Neovim with only its own LSP client: the diagnostic appears by itself,
-- code actions lead to a settled attempt, and the permission for a prompt is a message request. Runs in 0.7 and in 0.11:
--   nvim --headless -u NONE -i NONE -n -c 'luafile scenario.lua'
-- SCENARIO is a JSON object: {command: [...], root, file, route}, route "actions" or "command". Each step prints `ok …`;
-- a step that does not come prints `FAIL …`.
local scenario = vim.json and vim.json.decode(vim.env.SCENARIO) or vim.fn.json_decode(vim.env.SCENARIO)
local step_ms_max = 20000

local function fail(what)
  io.stderr:write('FAIL ' .. what .. '\n')
  vim.cmd('cquit 1')
end
local function ok(what) io.stdout:write('ok ' .. what .. '\n') end
local function wait(what, holds)
  if not vim.wait(step_ms_max, holds, 50) then fail('not seen: ' .. what) end
end

-- Every question to the user is answered with the choice that contains this text.
local choose = 'Inspect'
local offered = {}
local function title_of(item)
  if type(item) == 'string' then return item end
  if item.title then return item.title end
  local action = item.action or item[2] or {}
  return action.title or ''
end
vim.ui.select = function(items, _, done)
  offered = vim.tbl_map(title_of, items)
  for at, item in ipairs(items) do
    if title_of(item):find(choose, 1, true) then return done(item, at) end
  end
  done(nil)
end
vim.fn.inputlist = function(lines) -- message requests up to 0.10; the choices are numbered, below the question
  offered = lines
  for _, line in ipairs(lines) do
    local number = line:match('^(%d+)%. ')
    if number and line:find(choose, 1, true) then return tonumber(number) end
  end
  return 0
end

vim.cmd('edit ' .. scenario.root .. '/' .. scenario.file)
local buffer = vim.api.nvim_get_current_buf()
local id = vim.lsp.start_client({
  name = 'steadyhand',
  cmd = scenario.command,
  root_dir = scenario.root,
  init_options = { mode = 'ask' },
})
vim.lsp.buf_attach_client(buffer, id)

local function diagnostics() return vim.diagnostic.get(buffer) end
wait('a diagnostic', function() return #diagnostics() == 1 end)
local diagnostic = diagnostics()[1]
ok('diagnostic ' .. tostring(diagnostic.code or (diagnostic.user_data and diagnostic.user_data.lsp and diagnostic.user_data.lsp.code)) .. ': ' .. diagnostic.message)

local function act(title)
  choose = title
  vim.api.nvim_win_set_cursor(0, { diagnostics()[1].lnum + 1, 0 })
  vim.lsp.buf.code_action()
end
local client = vim.lsp.get_client_by_id(id)
local function actions()
  local line = diagnostics()[1].lnum
  local range = { start = { line = line, character = 0 }, ['end'] = { line = line, character = 0 } }
  local params = { textDocument = { uri = vim.uri_from_bufnr(buffer) }, range = range, context = { diagnostics = {} } }
  local found
  client.request('textDocument/codeAction', params, function(_, result) found = result or {} end, buffer)
  vim.wait(2000, function() return found ~= nil end, 20)
  return vim.tbl_map(function(action) return action.title end, found or {})
end

local before = table.concat(actions(), ', ')
if before:find('Confirm', 1, true) then fail('Confirm before an inspection: ' .. before) end
if scenario.route == 'command' then
  -- A decision without an inspection: the server inspects, shows what it found, and asks.
  local listed
  local list = { command = 'steadyhand.recovery.list', arguments = { vim.empty_dict() } }
  client.request('workspace/executeCommand', list, function(_, result) listed = result end, buffer)
  wait('the list', function() return listed ~= nil end)
  local effect = listed.uncertain[1]
  choose = 'Confirm'
  local confirm = { command = 'steadyhand.recovery.confirm', arguments = { { sessionId = effect.sessionId, attemptId = effect.attemptId } } }
  client.request('workspace/executeCommand', confirm, function() end, buffer)
  wait('the question', function() return table.concat(offered, ' | '):find('Later', 1, true) end)
  ok('inspected, and asked: ' .. table.concat(offered, ' | '):gsub('\n', ' '))
else
  act('Inspect')
  wait('Confirm after the inspection', function() return table.concat(actions(), ', '):find('Confirm', 1, true) end)
  ok('inspected')
  act('Confirm')
end
wait('no diagnostic', function() return #diagnostics() == 0 end)
ok('settled')

local answer
choose = 'Allow once'
local ask = { command = 'steadyhand.ask', arguments = { { text = 'write b.txt with "hello"' } } }
client.request('workspace/executeCommand', ask, function(trouble, result)
  answer = result or { reason = vim.inspect(trouble) }
end, buffer)
wait('the answer of steadyhand.ask', function() return answer ~= nil end)
if answer.reason ~= 'done' then fail('the turn ended: ' .. answer.reason) end
ok('asked: ' .. table.concat(offered, ' | '):gsub('\n', ' '))

vim.lsp.stop_client(id)
vim.wait(5000, function() return client.is_stopped() end, 50)
ok('all')
vim.cmd('qall!')
