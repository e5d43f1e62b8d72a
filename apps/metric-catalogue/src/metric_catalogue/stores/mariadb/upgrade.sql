-- Upgrades a catalogue from before the migration. It lacks the field of figure 5.7, has times in whole
-- seconds and parameters in whole numbers, and treats names that differ only in case as equal.

ALTER TABLE dimensions
    CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

ALTER TABLE metric_groups
    CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    ADD UNIQUE (name);

ALTER TABLE metric_versions
    CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    MODIFY updated_at DATETIME(3) NOT NULL,
    MODIFY deprecated_at DATETIME(3),
    MODIFY aggregation_param DECIMAL(12, 4),
    MODIFY chain_cutoff_date DATETIME(3);

ALTER TABLE metrics
    CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    MODIFY created_at DATETIME(3) NOT NULL,
    ADD COLUMN migratedToDynamoDB ENUM ('NOT_MIGRATED', 'IN_MIGRATION', 'MIGRATED')
        NOT NULL DEFAULT 'NOT_MIGRATED',
    ADD KEY (migratedToDynamoDB);
