from partita.cli import main

main()
