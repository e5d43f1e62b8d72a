CREATE TABLE Games (
    GameId VARCHAR(32) NOT NULL PRIMARY KEY,
    GameName VARCHAR(200) NOT NULL,
    GameType VARCHAR(50) NOT NULL
);

CREATE TABLE Players (
    PlayerId VARCHAR(32) NOT NULL PRIMARY KEY,
    PlayerName VARCHAR(200) NOT NULL
);

CREATE TABLE PlayersGamesItems (
    GameId VARCHAR(32) NOT NULL REFERENCES Games (GameId),
    PlayerId VARCHAR(32) NOT NULL REFERENCES Players (PlayerId),
    RegistrationDate DATE NOT NULL,
    Score INTEGER NOT NULL,
    PRIMARY KEY (GameId, PlayerId)
);

CREATE INDEX PlayersGamesItems_by_player ON PlayersGamesItems (PlayerId, RegistrationDate);
