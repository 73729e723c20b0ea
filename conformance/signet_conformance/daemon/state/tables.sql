-- The tables of a daemon, with their indexes and full-text indexes; `store` makes them in a new file.

CREATE TABLE memories (
  id TEXT PRIMARY KEY, type TEXT NOT NULL DEFAULT 'fact', content TEXT NOT NULL, normalized_content TEXT,
  content_hash TEXT, confidence REAL DEFAULT 1.0, importance REAL DEFAULT 0.5, tags TEXT, pinned INTEGER DEFAULT 0,
  who TEXT, why TEXT, project TEXT, scope TEXT, agent_id TEXT DEFAULT 'default', visibility TEXT DEFAULT 'global',
  source_id TEXT, source_type TEXT, source_path TEXT, runtime_path TEXT, idempotency_key TEXT,
  access_count INTEGER DEFAULT 0, last_accessed TEXT, is_deleted INTEGER DEFAULT 0, deleted_at TEXT,
  extraction_status TEXT DEFAULT 'none', embedding_model TEXT, version INTEGER DEFAULT 1,
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL, updated_by TEXT NOT NULL DEFAULT 'system');
CREATE INDEX memories_by_hash ON memories (content_hash);
CREATE INDEX memories_by_source ON memories (source_id);
CREATE INDEX memories_by_key ON memories (idempotency_key);
CREATE INDEX memories_by_age ON memories (created_at);
CREATE VIRTUAL TABLE memories_fts USING fts5(content, content='memories', content_rowid='rowid', tokenize='unicode61');
CREATE TRIGGER memories_insert AFTER INSERT ON memories BEGIN
  INSERT INTO memories_fts (rowid, content) VALUES (new.rowid, new.content); END;
CREATE TRIGGER memories_update AFTER UPDATE OF content ON memories BEGIN
  INSERT INTO memories_fts (memories_fts, rowid, content) VALUES ('delete', old.rowid, old.content);
  INSERT INTO memories_fts (rowid, content) VALUES (new.rowid, new.content); END;
CREATE TABLE memory_history (
  id TEXT PRIMARY KEY, memory_id TEXT NOT NULL, event TEXT NOT NULL, old_content TEXT, new_content TEXT,
  changed_by TEXT NOT NULL, reason TEXT, metadata TEXT, created_at TEXT NOT NULL, actor_type TEXT,
  session_id TEXT, request_id TEXT);
CREATE INDEX history_by_memory ON memory_history (memory_id);
CREATE TABLE memory_hints (
  memory_id TEXT NOT NULL, agent_id TEXT NOT NULL, hint TEXT NOT NULL, UNIQUE (memory_id, hint));
CREATE VIRTUAL TABLE memory_hints_fts USING fts5(hint, content='memory_hints', content_rowid='rowid');
CREATE TRIGGER hints_insert AFTER INSERT ON memory_hints BEGIN
  INSERT INTO memory_hints_fts (rowid, hint) VALUES (new.rowid, new.hint); END;
CREATE TABLE temporal_edges (
  memory_id TEXT NOT NULL, agent_id TEXT NOT NULL, facet TEXT NOT NULL, start_at TEXT NOT NULL, end_at TEXT,
  PRIMARY KEY (memory_id, agent_id, facet, start_at));
CREATE TABLE entities (
  id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, canonical_name TEXT, entity_type TEXT NOT NULL,
  agent_id TEXT NOT NULL DEFAULT 'default', mentions INTEGER DEFAULT 0, pinned INTEGER NOT NULL DEFAULT 0,
  pinned_at TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
CREATE VIRTUAL TABLE entities_fts USING fts5(name, canonical_name, content='entities', content_rowid='rowid');
CREATE TRIGGER entities_insert AFTER INSERT ON entities BEGIN
  INSERT INTO entities_fts (rowid, name, canonical_name) VALUES (new.rowid, new.name, new.canonical_name); END;
CREATE TABLE entity_mentions (memory_id TEXT NOT NULL, entity_id TEXT NOT NULL, PRIMARY KEY (memory_id, entity_id));
CREATE INDEX mentions_by_entity ON entity_mentions (entity_id);
CREATE TABLE entity_aspects (
  id TEXT PRIMARY KEY, entity_id TEXT NOT NULL, agent_id TEXT NOT NULL, name TEXT NOT NULL,
  canonical_name TEXT NOT NULL, weight REAL NOT NULL DEFAULT 0.5, UNIQUE (entity_id, canonical_name));
CREATE TABLE entity_attributes (
  id TEXT PRIMARY KEY, aspect_id TEXT NOT NULL, agent_id TEXT NOT NULL, memory_id TEXT, kind TEXT NOT NULL,
  content TEXT NOT NULL, normalized_content TEXT NOT NULL, group_key TEXT, claim_key TEXT,
  confidence REAL NOT NULL, importance REAL NOT NULL, status TEXT NOT NULL DEFAULT 'active', updated_at TEXT NOT NULL);
CREATE INDEX attributes_by_aspect ON entity_attributes (aspect_id);
CREATE INDEX attributes_by_memory ON entity_attributes (memory_id);
CREATE TABLE entity_dependencies (
  source_entity_id TEXT NOT NULL, target_entity_id TEXT NOT NULL, agent_id TEXT NOT NULL,
  strength REAL NOT NULL, PRIMARY KEY (source_entity_id, target_entity_id, agent_id));
CREATE TABLE agents (
  id TEXT PRIMARY KEY, name TEXT, read_policy TEXT NOT NULL DEFAULT 'isolated', policy_group TEXT,
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
CREATE TABLE session_transcripts (
  session_key TEXT NOT NULL, agent_id TEXT NOT NULL, content TEXT NOT NULL, harness TEXT, project TEXT,
  created_at TEXT NOT NULL, updated_at TEXT, PRIMARY KEY (agent_id, session_key));
CREATE VIRTUAL TABLE session_transcripts_fts USING fts5(content, content='session_transcripts', content_rowid='rowid');
CREATE TRIGGER transcripts_insert AFTER INSERT ON session_transcripts BEGIN
  INSERT INTO session_transcripts_fts (rowid, content) VALUES (new.rowid, new.content); END;
CREATE TRIGGER transcripts_delete AFTER DELETE ON session_transcripts BEGIN
  INSERT INTO session_transcripts_fts (session_transcripts_fts, rowid, content)
  VALUES ('delete', old.rowid, old.content); END;
CREATE TRIGGER transcripts_update AFTER UPDATE ON session_transcripts BEGIN
  INSERT INTO session_transcripts_fts (session_transcripts_fts, rowid, content)
  VALUES ('delete', old.rowid, old.content);
  INSERT INTO session_transcripts_fts (rowid, content) VALUES (new.rowid, new.content); END;
CREATE TABLE extract_cursors (
  session_key TEXT NOT NULL, agent_id TEXT NOT NULL, last_offset INTEGER NOT NULL, PRIMARY KEY (session_key, agent_id));
CREATE TABLE session_summaries (
  id TEXT PRIMARY KEY, project TEXT, depth INTEGER NOT NULL DEFAULT 0, kind TEXT NOT NULL, content TEXT NOT NULL,
  token_count INTEGER, earliest_at TEXT NOT NULL, latest_at TEXT NOT NULL, session_key TEXT, harness TEXT,
  agent_id TEXT NOT NULL, source_type TEXT, source_ref TEXT, meta_json TEXT, created_at TEXT NOT NULL);
CREATE TABLE context_epochs (
  session_key TEXT NOT NULL, agent_id TEXT NOT NULL, context_epoch INTEGER NOT NULL,
  PRIMARY KEY (session_key, agent_id, context_epoch));
CREATE TABLE recall_events (
  session_key TEXT NOT NULL, agent_id TEXT NOT NULL, context_epoch INTEGER NOT NULL, item_id TEXT NOT NULL,
  PRIMARY KEY (session_key, agent_id, context_epoch, item_id));
CREATE TABLE shown_memories (
  session_key TEXT NOT NULL, agent_id TEXT NOT NULL, memory_id TEXT NOT NULL,
  PRIMARY KEY (session_key, agent_id, memory_id));
CREATE TABLE session_claims (
  claim_key TEXT PRIMARY KEY, session_key TEXT NOT NULL, agent_id TEXT NOT NULL, runtime_path TEXT NOT NULL,
  claimed_at REAL NOT NULL, expires_at REAL NOT NULL);
CREATE TABLE api_keys (
  id TEXT PRIMARY KEY, prefix TEXT NOT NULL UNIQUE, name TEXT NOT NULL, key_hash TEXT NOT NULL, salt TEXT NOT NULL,
  role TEXT NOT NULL, scope_json TEXT NOT NULL, permissions_json TEXT NOT NULL, connector TEXT, harness TEXT,
  agent_id TEXT, allowed_projects_json TEXT, created_at TEXT NOT NULL, last_used_at TEXT, revoked_at TEXT,
  expires_at TEXT);
CREATE TABLE settings (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE secrets (name TEXT PRIMARY KEY, value TEXT NOT NULL);
