"""Kind → settings of that kind, from `postgres --describe-config` of PostgreSQL 15.20."""

from __future__ import annotations

from collections.abc import Mapping

SETTINGS: Mapping[str, str] = {
    "count": """
        archive_timeout authentication_timeout autovacuum_analyze_threshold autovacuum_freeze_max_age
        autovacuum_max_workers autovacuum_multixact_freeze_max_age autovacuum_naptime
        autovacuum_vacuum_threshold backend_flush_after bgwriter_delay bgwriter_flush_after
        bgwriter_lru_maxpages checkpoint_flush_after checkpoint_timeout checkpoint_warning
        client_connection_check_interval commit_delay commit_siblings deadlock_timeout default_statistics_target
        effective_cache_size effective_io_concurrency from_collapse_limit geqo_effort geqo_generations
        geqo_pool_size geqo_threshold gin_fuzzy_search_limit gin_pending_list_limit huge_page_size
        idle_in_transaction_session_timeout idle_session_timeout join_collapse_limit lock_timeout log_file_mode
        log_rotation_age log_rotation_size log_startup_progress_interval logical_decoding_work_mem
        maintenance_io_concurrency maintenance_work_mem max_connections max_files_per_process
        max_locks_per_transaction max_logical_replication_workers max_parallel_maintenance_workers
        max_parallel_workers max_parallel_workers_per_gather max_pred_locks_per_page
        max_pred_locks_per_transaction max_prepared_transactions max_replication_slots max_stack_depth
        max_sync_workers_per_subscription max_wal_senders max_wal_size max_worker_processes
        min_dynamic_shared_memory min_parallel_index_scan_size min_parallel_table_scan_size min_wal_size port
        recovery_min_apply_delay shared_buffers statement_timeout superuser_reserved_connections
        tcp_keepalives_count tcp_keepalives_idle tcp_keepalives_interval tcp_user_timeout temp_buffers
        track_activity_query_size unix_socket_permissions vacuum_cost_limit vacuum_cost_page_dirty
        vacuum_cost_page_hit vacuum_cost_page_miss vacuum_defer_cleanup_age vacuum_failsafe_age
        vacuum_freeze_min_age vacuum_freeze_table_age vacuum_multixact_failsafe_age
        vacuum_multixact_freeze_min_age vacuum_multixact_freeze_table_age wal_decode_buffer_size wal_keep_size
        wal_receiver_status_interval wal_receiver_timeout wal_retrieve_retry_interval wal_sender_timeout
        wal_skip_threshold wal_writer_delay wal_writer_flush_after work_mem
    """,
    "flag": """
        array_nulls autovacuum bonjour check_function_bodies data_sync_retry db_user_namespace
        debug_pretty_print debug_print_parse debug_print_plan debug_print_rewritten
        default_transaction_deferrable default_transaction_read_only enable_async_append enable_bitmapscan
        enable_gathermerge enable_hashagg enable_hashjoin enable_incremental_sort enable_indexonlyscan
        enable_indexscan enable_material enable_memoize enable_mergejoin enable_nestloop enable_parallel_append
        enable_parallel_hash enable_partition_pruning enable_partitionwise_aggregate enable_partitionwise_join
        enable_seqscan enable_sort enable_tidscan escape_string_warning exit_on_error fsync full_page_writes
        geqo hot_standby hot_standby_feedback jit krb_caseins_users lo_compat_privileges log_checkpoints
        log_connections log_disconnections log_duration log_executor_stats log_hostname log_lock_waits
        log_parser_stats log_planner_stats log_recovery_conflict_waits log_replication_commands
        log_statement_stats log_truncate_on_rotation logging_collector parallel_leader_participation
        quote_all_identifiers recovery_target_inclusive restart_after_crash row_security ssl
        ssl_passphrase_command_supports_reload ssl_prefer_server_ciphers standard_conforming_strings
        synchronize_seqscans syslog_sequence_numbers syslog_split_messages track_activities
        track_commit_timestamp track_counts track_io_timing track_wal_io_timing transform_null_equals
        update_process_title wal_init_zero wal_log_hints wal_receiver_create_temp_slot wal_recycle
    """,
    "real": """
        autovacuum_vacuum_cost_delay jit_above_cost jit_inline_above_cost jit_optimize_above_cost
    """,
    "share": """
        autovacuum_analyze_scale_factor autovacuum_vacuum_insert_scale_factor autovacuum_vacuum_scale_factor
        bgwriter_lru_multiplier checkpoint_completion_target cpu_index_tuple_cost cpu_operator_cost
        cpu_tuple_cost cursor_tuple_fraction geqo_seed geqo_selection_bias hash_mem_multiplier
        log_statement_sample_rate log_transaction_sample_rate parallel_setup_cost parallel_tuple_cost
        random_page_cost recursive_worktable_factor seq_page_cost vacuum_cost_delay
    """,
    "whole": """
        autovacuum_vacuum_cost_limit autovacuum_vacuum_insert_threshold autovacuum_work_mem extra_float_digits
        log_autovacuum_min_duration log_min_duration_sample log_min_duration_statement log_parameter_max_length
        log_parameter_max_length_on_error log_temp_files max_pred_locks_per_relation max_slot_wal_keep_size
        max_standby_archive_delay max_standby_streaming_delay old_snapshot_threshold temp_file_limit wal_buffers
    """,
    "word": """
        archive_mode backslash_quote bytea_output client_min_messages compute_query_id constraint_exclusion
        default_toast_compression default_transaction_isolation dynamic_shared_memory_type huge_pages
        log_error_verbosity log_min_error_statement log_min_messages log_statement password_encryption
        plan_cache_mode recovery_init_sync_method recovery_prefetch recovery_target_action
        session_replication_role shared_memory_type ssl_max_protocol_version ssl_min_protocol_version
        stats_fetch_consistency synchronous_commit syslog_facility track_functions wal_compression wal_level
        wal_sync_method xmlbinary xmloption
    """,
}
