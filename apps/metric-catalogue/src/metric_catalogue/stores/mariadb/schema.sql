CREATE TABLE IF NOT EXISTS dimensions (
    id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name VARCHAR(100) NOT NULL UNIQUE
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS metric_groups (
    id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name VARCHAR(150) NOT NULL UNIQUE
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS dimensions_metric_groups (
    dimension_id INT NOT NULL,
    metric_group_id INT NOT NULL,
    PRIMARY KEY (metric_group_id, dimension_id),
    FOREIGN KEY (dimension_id) REFERENCES dimensions (id),
    FOREIGN KEY (metric_group_id) REFERENCES metric_groups (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS metrics (
    id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name VARCHAR(150) NOT NULL UNIQUE,
    metric_group_id INT NOT NULL,
    created_at DATETIME(3) NOT NULL,
    created_by VARCHAR(50) NOT NULL,
    migratedToDynamoDB ENUM ('NOT_MIGRATED', 'IN_MIGRATION', 'MIGRATED')
        NOT NULL DEFAULT 'NOT_MIGRATED',
    KEY (migratedToDynamoDB),
    FOREIGN KEY (metric_group_id) REFERENCES metric_groups (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS metric_versions (
    metric_id INT NOT NULL,
    version INT NOT NULL,
    updated_at DATETIME(3) NOT NULL,
    updated_by VARCHAR(50) NOT NULL,
    deprecated_at DATETIME(3),
    deprecated_by VARCHAR(50),
    deprecated_reason VARCHAR(500),
    aggregation_style ENUM ('SUM', 'LAST_DAY_OF_PERIOD', 'PERCENTILE') NOT NULL,
    aggregation_param DECIMAL(12, 4),
    value_type ENUM ('SCALAR', 'WEIGHTED_AVERAGE', 'HYBRID', 'PERCENTILE') NOT NULL,
    chained_metric_id INT,
    chain_cutoff_date DATETIME(3),
    hybrid_formula VARCHAR(1000),
    PRIMARY KEY (metric_id, version),
    FOREIGN KEY (metric_id) REFERENCES metrics (id),
    FOREIGN KEY (chained_metric_id) REFERENCES metrics (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS metric_relationships (
    consumer_metric_id INT NOT NULL,
    consumed_metric_id INT NOT NULL,
    PRIMARY KEY (consumer_metric_id, consumed_metric_id),
    FOREIGN KEY (consumer_metric_id) REFERENCES metrics (id),
    FOREIGN KEY (consumed_metric_id) REFERENCES metrics (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- INSERT ... SELECT without a row calls no trigger. A plain INSERT would be refused by the fence
-- after a cutover, and the catalogue could not be opened.
INSERT INTO metric_groups (name) SELECT 'hybrid metrics' FROM DUAL
WHERE NOT EXISTS (SELECT 1 FROM metric_groups WHERE name = 'hybrid metrics');
