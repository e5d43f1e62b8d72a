-- The relational schema as it should have been (figure 5.2): without metric groups, which only
-- connected a metric with its dimensions, and with the dimensions related to the metric itself.
-- Hybrid metrics are those with the value type HYBRID. The service runs on schema.sql; this one is
-- for a catalogue that stays relational, and the model that the table in DynamoDB was made from.

CREATE TABLE IF NOT EXISTS dimensions (
    id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name VARCHAR(100) NOT NULL UNIQUE
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS metrics (
    id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name VARCHAR(150) NOT NULL UNIQUE,
    created_at DATETIME(3) NOT NULL,
    created_by VARCHAR(50) NOT NULL
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
    FOREIGN KEY (metric_id) REFERENCES metrics (id) ON DELETE CASCADE,
    FOREIGN KEY (chained_metric_id) REFERENCES metrics (id),
    CHECK ((value_type = 'HYBRID') = (hybrid_formula IS NOT NULL)),
    CHECK ((chained_metric_id IS NULL) = (chain_cutoff_date IS NULL))
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS related_dimensions (
    metric_id INT NOT NULL,
    dimension_id INT NOT NULL,
    PRIMARY KEY (metric_id, dimension_id),
    FOREIGN KEY (metric_id) REFERENCES metrics (id) ON DELETE CASCADE,
    FOREIGN KEY (dimension_id) REFERENCES dimensions (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS metric_relationships (
    consumer_metric_id INT NOT NULL,
    consumed_metric_id INT NOT NULL,
    PRIMARY KEY (consumer_metric_id, consumed_metric_id),
    FOREIGN KEY (consumer_metric_id) REFERENCES metrics (id) ON DELETE CASCADE,
    FOREIGN KEY (consumed_metric_id) REFERENCES metrics (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
