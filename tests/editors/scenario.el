;;; scenario.el --- An uncertain effect of an earlier server, in Emacs with eglot alone -*- lexical-binding: t -*-
;; The same steps as scenario.lua, by the same routes: emacs -Q --batch -l scenario.el, with
;; SCENARIO = {"command": [...], "root": …, "file": …, "route": …}.
;; Each step prints "ok …"; a step that does not come ends Emacs with 1.

(require 'package)
(add-to-list 'package-directory-list "/usr/share/emacs/site-lisp/elpa")
(package-initialize)
(require 'json)
(require 'project)
(require 'flymake)
(require 'eglot)

(defvar scenario (json-parse-string (getenv "SCENARIO") :object-type 'alist :array-type 'list))
(defvar step-s-max 20)
(defvar choose "Inspect" "Every question to the user is answered with the choice that contains this text.")
(defvar offered nil)

(defun say (text &rest values) (princ (concat (apply #'format text values) "\n")))
(defun wait-until (what holds)
  (let ((end (+ (float-time) step-s-max)) found)
    (while (not (setq found (funcall holds)))
      (when (> (float-time) end) (say "FAIL not seen: %s" what) (kill-emacs 1))
      (accept-process-output nil 0.1))
    found))

(defun choose-one (_prompt choices &rest _)
  (setq offered (all-completions "" choices))
  (or (seq-find (lambda (one) (string-match-p (regexp-quote choose) one)) offered)
      (progn (say "FAIL %s is not among %S" choose offered) (kill-emacs 1))))
(advice-add 'completing-read :override #'choose-one)

(let ((root (file-name-as-directory (alist-get 'root scenario))))
  (advice-add 'project-current :override (lambda (&rest _) (cons 'transient root)))
  (setq eglot-autoshutdown nil eglot-sync-connect 10 eglot-connect-timeout 20)
  (find-file (expand-file-name (alist-get 'file scenario) root))
  (text-mode)
  (add-to-list 'eglot-server-programs
               (cons 'text-mode (append (alist-get 'command scenario) '(:initializationOptions (:mode "ask")))))
  (apply #'eglot--connect (eglot--guess-contact)))

(defun server () (eglot-current-server))
(defun diagnostics () (flymake-start) (flymake-diagnostics))
(wait-until "eglot in the buffer" (lambda () (progn (eglot--maybe-activate-editing-mode) (eglot-managed-p))))
(let ((diagnostic (car (wait-until "a diagnostic" #'diagnostics))))
  (say "ok diagnostic uncertain-write: %s"
       (replace-regexp-in-string "\\`.*?\\(It is uncertain\\)" "\\1" (flymake-diagnostic-text diagnostic)))
  (goto-char (flymake-diagnostic-beg diagnostic)))

(defun actions ()
  (mapcar (lambda (one) (plist-get one :title))
          (append (jsonrpc-request (server) :textDocument/codeAction
                                   (list :textDocument (eglot--TextDocumentIdentifier)
                                         :range (list :start (eglot--pos-to-lsp-position) :end (eglot--pos-to-lsp-position))
                                         :context (list :diagnostics [])))
                  nil)))
(defun act (title)
  (setq choose title
        last-nonmenu-event ?x) ; a key: without one, eglot would pop up a menu
  (eglot-code-actions (line-beginning-position) (line-end-position) nil t))

(when (seq-find (lambda (one) (string-match-p "Confirm" one)) (actions))
  (say "FAIL Confirm before an inspection") (kill-emacs 1))
(defun command (name &rest argument)
  (jsonrpc-request (server) :workspace/executeCommand (list :command name :arguments (vector (or argument eglot--{}))) :timeout step-s-max))
(if (equal (alist-get 'route scenario) "command")
    ;; A decision without an inspection: the server inspects, shows what it found, and asks.
    (let ((effect (aref (plist-get (command "steadyhand.recovery.list") :uncertain) 0)))
      (setq choose "Confirm")
      (command "steadyhand.recovery.confirm" :sessionId (plist-get effect :sessionId) :attemptId (plist-get effect :attemptId))
      (unless (member "Later" offered) (say "FAIL it was not asked: %S" offered) (kill-emacs 1))
      (say "ok inspected, and asked: %s" (mapconcat #'identity offered " | ")))
  (act "Inspect")
  (wait-until "Confirm after the inspection"
              (lambda () (seq-find (lambda (one) (string-match-p "Confirm" one)) (actions))))
  (say "ok inspected")
  (act "Confirm"))
(wait-until "no diagnostic" (lambda () (null (diagnostics))))
(say "ok settled")

(setq choose "Allow once")
(let ((answer (jsonrpc-request (server) :workspace/executeCommand
                               (list :command "steadyhand.ask" :arguments (vector (list :text "write b.txt with \"hello\"")))
                               :timeout 30)))
  (unless (equal (plist-get answer :reason) "done") (say "FAIL the turn ended: %S" answer) (kill-emacs 1)))
(say "ok asked: %s" (mapconcat #'identity offered " | "))
(ignore-errors (eglot-shutdown (server)))
(say "ok all")
(kill-emacs 0)
