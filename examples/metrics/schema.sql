CREATE TABLE dimensions (
    id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name VARCHAR(100) COLLATE utf8mb4_nopad_bin NOT NULL UNIQUE
);

CREATE TABLE metric_groups (
    id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name VARCHAR(150) NOT NULL
);

CREATE TABLE dimensions_metric_groups (
    dimension_id INT NOT NULL,
    metric_group_id INT NOT NULL,
    PRIMARY KEY (dimension_id, metric_group_id),
    FOREIGN KEY (dimension_id) REFERENCES dimensions (id),
    FOREIGN KEY (metric_group_id) REFERENCES metric_groups (id)
);

CREATE TABLE metrics (
    id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name VARCHAR(150) COLLATE utf8mb4_nopad_bin NOT NULL UNIQUE,
    metric_group_id INT NOT NULL,
    created_at DATETIME NOT NULL,
    created_by VARCHAR(50) NOT NULL,
    FOREIGN KEY (metric_group_id) REFERENCES metric_groups (id)
);

CREATE TABLE metric_versions (
    metric_id INT NOT NULL,
    version INT NOT NULL,
    updated_at DATETIME NOT NULL,
    updated_by VARCHAR(50) NOT NULL,
    deprecated_at DATETIME,
    deprecated_by VARCHAR(50),
    deprecated_reason VARCHAR(500),
    aggregation_style ENUM ('SUM', 'LAST_DAY_OF_PERIOD', 'PERCENTILE') NOT NULL,
    aggregation_param INT,
    value_type ENUM ('SCALAR', 'WEIGHTED_AVERAGE', 'HYBRID', 'PERCENTILE') NOT NULL,
    chained_metric_id INT,
    chain_cutoff_date DATETIME,
    hybrid_formula VARCHAR(1000),
    PRIMARY KEY (metric_id, version),
    FOREIGN KEY (metric_id) REFERENCES metrics (id),
    FOREIGN KEY (chained_metric_id) REFERENCES metrics (id)
);

CREATE TABLE metric_relationships (
    consumer_metric_id INT NOT NULL,
    consumed_metric_id INT NOT NULL,
    PRIMARY KEY (consumer_metric_id, consumed_metric_id),
    FOREIGN KEY (consumer_metric_id) REFERENCES metrics (id),
    FOREIGN KEY (consumed_metric_id) REFERENCES metrics (id)
);
